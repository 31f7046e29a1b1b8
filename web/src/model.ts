// What the API answers (docs/openapi.yaml), as far as the dashboard reads it. Instants are nanoseconds since the Unix
// epoch: bigint where a double can't hold them. null: not known; never shown as 0 or as good.
export type Ns = number | bigint;
export type Freshness = "live" | "late" | "stale" | "never";
export type Health = "ok" | "warn" | "bad" | "unknown";
export type PortState = "up" | "down" | "gone" | "unknown";
export type ClockStatus = "SYNCED" | "HOLDOVER" | "DISRUPTED" | "UNKNOWN"; // as agents say it

export interface Page<T> {
  items: T[];
  next: string | null;
}

export interface Status {
  controller_version: string;
  started_utc_ns: Ns;
  now_utc_ns: Ns;
  hosts: number;
  freshness: Record<Freshness, number>;
  health: Record<Health, number>;
  ports: Record<PortState, number>;
  clocks: Record<"synced" | "holdover" | "disrupted" | "unknown", number>;
  clock_hard_ns_max: number | null;
  clock_statistical_ns_max: number | null;
  paths: { measured: number; dead: number; lossy: number };
  /** unknown: of hosts that aren't heard; the others are of those that are. */
  watching: { nics: number; nics_unwatched: number; nics_unknown: number; hosts_sensors_off: number };
  findings_open: number;
  certificates_ending: number;
  store: { writable: boolean; file_bytes: number | null; commit_ns_last: number | null; commit_ns_max: number | null };
  /** null: not for a token with a scope, as the sizes of the store. */
  ingest: null | { reports: number; gaps: number; malformed: number; refused: number; limited: number; samples_dropped: number };
}

export interface Host {
  name: string;
  index: number;
  member: boolean;
  health: Health;
  freshness: Freshness;
  heard_utc_ns: Ns | null;
  nics: number;
  nics_up: number | null;
  sensors_off: string[]; // what its agent can't watch, and why
  paths: number | null;
  paths_dead: number | null;
  paths_lossy: number | null;
  findings_open: number;
  clock: {
    status: ClockStatus;
    why: string | null;
    hard_ns: number | null;
    statistical_ns: number | null;
    offset_ns: Ns | null;
    rate_ppb: number | null;
    timeline: string | null;
    epoch?: number | null;
    edges_live: number | null;
    edges_chosen: number | null;
  };
  agent: { version: string | null; cpu_ppm: number | null; memory_bytes: number | null; late_ticks: number | null; packets_bad: number | null; reports_lost: number | null };
}

export interface Nic {
  nic: number;
  host: string;
  name: string;
  rail: number;
  leaf: string | null;
  state: PortState;
  freshness: Freshness;
  trouble: string | null;
  watched: boolean | null;
}

export interface Port {
  nic: number;
  host: string;
  name: string;
  rail: number;
  leaf: string | null;
  switch: string | null; // by LLDP
  switch_port: string | null;
  first_switch?: string | null; // that its packets pass; absent from controllers of before
  state: PortState;
  /** That accuses it or its host, whatever its carrier says; absent from controllers of before. */
  incident?: { incident: Ns; kind: "nic" | "host"; direction: Element["direction"]; one_of: number } | null;
  since_utc_ns: Ns | null;
  speed_bps: number | null;
  carrier_down_count: number | null;
  flaps_hour: number | null;
  flaps_day: number | null;
  rx_bps: number | null;
  tx_bps: number | null;
  rx_errors: number | null;
  tx_errors: number | null;
  freshness: Freshness;
}

export type TrunkState = "good" | "lossy" | "dead" | "gone" | "unknown";

export interface Trunk { // one direction
  from: string;
  to: string;
  state: TrunkState;
  gone_utc_ns: Ns | null;
  ways: number;
  paths_alive: number;
  paths_lossy: number;
  paths_dead: number;
  owd_ns_p50: number | null; // of the best path over it
  owd_ns_p99: number | null;
  loss_ppm: number | null;
}

export interface Fabric {
  ways: number;
  ways_known: number;
  switches: { name: string; tier: number; ways: number; declared: string | null }[];
  trunks: Trunk[];
  trunks_more: number;
}

export interface Path {
  from: number;
  to: number;
  port: number;
  signature: string | null;
  switches?: (string | null)[] | null; // null: not known; absent from controllers of before
  state: "unknown" | "alive" | "suspect" | "lossy" | "dead";
  owd_ns_p50: number | null;
  owd_ns_p99: number | null;
  bound_ns: number | null;
  loss_ppm: number | null;
}

export interface Finding {
  id: Ns;
  host: string | null;
  open: boolean;
  since_utc_ns: Ns;
  until_utc_ns: Ns | null;
  kind: string;
  detail: {
    text?: string;
    from_host?: string | null;
    to_host?: string | null;
    what?: string;
    since_fleet_ns?: Ns | null;
    suspect?: { kind?: string; name?: string | null } | string | null;
    advice?: string | null;
  } | null;
}

export interface LiveRow {
  id: Ns;
  host: string | null;
  at_utc_ns: Ns;
  kind: string;
  word: string;
  detail: { text?: string; level?: string; paths?: number; beyond?: number } | null;
}

export interface Level {
  name: string;
  measure: string;
  unit: "ns" | "ppm" | "hops";
  within: string;
  limit: number;
  state: "met" | "broken" | "unknown";
  since_utc_ns: Ns | null;
  paths: number;
  paths_unmeasured: number;
  paths_beyond: number;
  worst: { from: string | null; to: string | null; from_nic: number; to_nic: number; port: number; value: number } | null;
  by: { nic: string | null; nic_id: number; paths_beyond: number }[];
}

export interface Levels {
  items: Level[];
  error: string | null; // of a file that was refused
}

export interface Series {
  metric: string;
  host: string;
  from_utc_ns: Ns;
  step_ns: number;
  values: (number | null)[];
}

/** One thing of the fleet. */
export interface Element {
  kind: string;
  direction: "out" | "in" | "both" | null;
  name: string | null;
  places: { kind: "host" | "nic" | "leaf" | "spine" | "router"; host?: string | null; nic?: number | null; address?: string; name: string }[];
}

export interface Incident {
  incident: Ns;
  /** Absent from incidents of before. */
  element?: Element | null;
  /** Of an unknown one: what it may be; absent from incidents of before. */
  one_of?: Element[];
  others?: boolean; // or what one_of doesn't list
  state: string; // "new", "open", "quiet", "resolved", "merged"
  severity: string;
  cause: string | null;
  text: string;
  since_utc_ns: Ns | null;
  resolved_utc_ns?: Ns | null;
  alerts: number; // firing now
  alerts_total: number;
  hosts: number;
  acknowledged_by: string | null;
  silenced: boolean;
}

/** An event of kind incident: the incident as it was then told. */
export interface IncidentRow {
  id: Ns;
  at_utc_ns: Ns;
  word: string; // "opened", "worse", "resolved" …
  detail: Incident | null;
}

export interface Silence {
  id: number;
  from_utc_ns: Ns;
  until_utc_ns: Ns;
  rule: string | null;
  host: string | null;
  element: string | null;
  every_ns: number | null; // of a window that comes again
  maintenance: boolean;
  by: string | null;
  why: string | null;
}

export interface Alert {
  id: Ns;
  incident: Ns | null;
  rule: string;
  state: "pending" | "firing";
  severity: string;
  since_utc_ns: Ns | null;
  text: string;
}

export function big(ns: Ns): bigint {
  return typeof ns === "bigint" ? ns : BigInt(Math.round(ns));
}

export interface JobFlow {
  from_host: string;
  from_nic: string;
  from_rank: number | null;
  to_host: string;
  to_nic: string;
  to_rank: number | null;
  lane: number;
  state: string;
  reason: string | null;
  rate_bps: number;
  owd_ns_p50: number | null;
  owd_ns_p99: number | null;
  owd_ns_floor: number | null;
  queued_ns_p50: number | null;
  consumed_ns_p50: number | null;
  bound_ns: number | null;
}

export interface Job {
  job: string;
  user: number;
  state: "unknown" | "running" | "idle" | "parted" | "ended" | "killed";
  since_utc_ns: Ns;
  heard_utc_ns: Ns;
  ranks: number | null;
  processes: number;
  processes_silent: number;
  hosts: number;
  rate_bps: number | null;
  bytes: number | null;
  lanes: number | null;
  lanes_usable: number | null;
  failovers: number | null;
  repaths: number | null;
  parted: number | null;
  stalled_ns: number | null;
  owd_ns_p50: number | null;
  worst: JobFlow | null;
  /** Absent from controllers of before. */
  network?: { answer: "yes" | "no" | "unknown"; why: string; sentence: string };
}

export interface JobProcess {
  host: string;
  pid: number;
  rank: number | null;
  state: Job["state"];
  rate_out_bps: number | null;
  rate_in_bps: number | null;
  lanes: number;
  lanes_usable: number;
  failovers: number;
  stalled_ns: number;
  owd_ns_p50: number | null;
}

export interface JobDetail extends Job {
  process_list: JobProcess[];
  past: { from_utc_ns: Ns; step_ns: number; rate_bps: (number | null)[]; owd_ns_p50: (number | null)[]; owd_ns_p99: (number | null)[] };
  flows: JobFlow[];
}

export interface JobRow {
  id: Ns;
  at_utc_ns: Ns;
  host: string | null;
  word: string;
  detail: { job?: string; user?: number; text?: string } | null;
}

export interface Saving {
  month: string;
  job: string;
  user: number;
  ranks: number | null;
  faults: number;
  restarts_avoided: number;
  gpu_hours_saved: number;
  gpu_hours_lost: number;
  evidence: Ns[]; // an event for each restart avoided, the first 100
}

export interface SavingsAnswer {
  items: Saving[];
  whole: boolean;
}

// ---- settings: docs/openapi.yaml's Config, Token, AuditPage ----

export interface ConfigVersion {
  version: Ns;
  state: "active" | "tried" | "replaced" | "taken-back";
  at_utc_ns: Ns;
  who: string;
  why: string | null;
  ended_why: string | null;
  hosts: number;
  settings?: Record<string, unknown>; // null: not said
  text: string;
}

export interface Config {
  active: ConfigVersion | null;
  trial: null | { version: ConfigVersion; until_utc_ns: Ns; hosts: string[]; confirmed: number };
  rolled_back: boolean;
  hosts_behind: number;
  hosts_refusing: number;
}

export interface ConfigChange {
  key: string;
  from: unknown;
  to: unknown;
}

export interface Token {
  id: number;
  name: string;
  role: string;
  scope: string | null;
  created_utc_ns: Ns;
  expires_utc_ns: Ns | null;
  used_utc_ns: Ns | null;
}

export interface NewToken {
  name: string;
  token: string;
}

export interface AuditRow {
  id: Ns;
  at_utc_ns: Ns;
  who: string;
  what: string;
  detail: string;
  source: string | null;
}

export interface AuditGate {
  status: AuditStatus;
  text: string;
  run: string | null;
}

export interface AuditDiff {
  hosts: number;
  cut: boolean;
  facts: { host: string; fact: string; subject: string; was: string | null; is: string | null }[];
  results: { host: string; check: string; was: string; is: string }[];
  measured?: { host: string; check: string; subject: string; was: string; is: string }[]; // an older controller has none
}

export interface AuditBaseline {
  run: string;
  name: string;
  who: string;
  accepted_utc_ns: Ns;
  started_utc_ns: Ns;
  hosts: number;
  measured?: number; // hosts that later measurements can be compared with; an older controller tells none
}

export interface AuditCheck {
  check: string;
  title: string;
  why: string;
  severity: string;
}

export type AuditStatus = "fail" | "unknown" | "warn" | "pass" | "skip";
export type AuditCounts = Record<AuditStatus, number>;

export interface AuditRun {
  run: string;
  state: "reading" | "measuring" | "testing" | "judging" | "done" | "stopped";
  matrix?: boolean;
  matrix_why?: string | null;
  tests_why?: string | null; // as all of tests: of this release on
  tests_done?: number;
  tests_planned?: number;
  tests?: AuditTests | null;
  who: string;
  why: string | null;
  started_utc_ns: Ns;
  ended_utc_ns: Ns | null;
  hosts: number;
  unanswered: number;
  look: number;
  left_ns?: number | null; // of the present plan of a matrix or of tests; of this release on
  stage_ns?: number | null;
  covered?: Record<"sheets" | "cells" | "tests", { done: number; of: number } | null> | null; // when it has ended; of this release on
  not_read: { host: string; reason: string; note: string }[];
  counts?: AuditCounts; // of hosts; when it has ended
  checks?: { check: string; group: string | null; part: string | null; counts: AuditCounts }[];
}

/** How long an audit takes, at most. Null: not possible in this fleet. */
export interface AuditCost {
  hosts: number;
  nics: number;
  lead_ns: number;
  matrix: { ns: number; packets: number } | null;
  bandwidth: { pairs_ns: number; fabric_ns: number } | null;
  nccl: { pairs_ns: number; fabric_ns: number; rings_ns: number; round_ns: number } | null;
}

export interface AuditTests {
  expected: number | null;
  rows: { lanes: number; order: "name" | "leaf"; hosts: number; outcome: string; busbw: number | null; spread_1e4: number | null }[];
  rows_ms: number | null;
  slow: boolean;
  searched: boolean;
  named: { host: string; with: string | null }[];
}

export interface AuditMatrixNic {
  nic: number;
  host: string;
  name: string;
  leaf: string | null;
  leaf_found: string | null;
  unmeasured: number | null;
  lost_out: number | null;
  lost_in: number | null;
  out_ns: number | null;
  in_ns: number | null;
  note: string | null;
}

export interface AuditMatrix {
  cells?: number;
  measured?: number;
  unmeasured?: Record<string, number>;
  limit_ns: number | null; // null: a tenant asks
  nics: AuditMatrixNic[];
  delay_ns?: (number | null)[][]; // by sender; -1: nothing arrived
}

export interface AuditResult {
  check: string;
  host: string;
  subject: string;
  device?: string | null; // what is at the subject's PCI address; an older controller's results have none
  status: AuditStatus;
  reason: string | null;
  severity: string;
  suspect: boolean;
  found: string;
  expected: string;
  basis?: string; // older results have it in expected
  note: string;
  at_utc_ns?: Ns | null; // when what was found was read; older results do not have it
  evidence: { fact: string; subject: string; state: string; value: string; source: string; at_utc_ns?: Ns }[];
  remedy: string | null;
}

export interface AuditNode {
  host: string;
  status: AuditStatus;
  agent: string;
  nic: AuditStatus;
  initialized: AuditStatus;
  active: AuditStatus;
  gid_index: AuditStatus;
  connectivity: AuditStatus;
  connectivity_now: boolean; // of now, not of the audit: it has not looked
  gate: AuditStatus;
  gate_text: string;
}
