// What happened, as a person would tell it: the same word said of many hosts within seconds is one line that names them, and what agents
// found is told by the incident that it belongs to. The same rules as `foliot changes` (src/app/foliot_changes.c).
import type { AuditRow, ConfigVersion, LiveRow, Ns } from "./model.ts";
import { big } from "./model.ts";

export interface Change {
  id: string;
  atNs: bigint; // of the newest of them
  hosts: string[];
  who: string | null;
  text: string;
  tone: "good" | "warn" | "bad" | "none";
  version?: Ns; // of the configuration
}

const TOGETHER_NS = 5_000_000_000n;

const hostWords: Record<string, string> = {
  joined: "joined the fleet",
  removed: "was removed from the fleet",
  "agent-started": "its agent started",
  silent: "fell silent",
  heard: "reports again",
  "history-gap": "some of its reports are missing",
  "reports-lost": "some of its reports were lost",
  "report-refused": "one of its reports was refused",
  "over-quota": "it sends more than its quota",
};
const configWords: Record<string, string> = {
  "config-applied": "was applied",
  "config-tried": "is on trial on some hosts",
  "config-taken-back": "was taken back",
};

type Detail = NonNullable<LiveRow["detail"]> & { job?: string; who?: string; why?: string; version?: Ns; incident?: Ns; severity?: string; cause?: string; kind?: string; host?: string };

/** Told by an incident, or nothing that changed. */
export function isDetail(e: LiveRow): boolean {
  return e.kind === "finding" || (e.kind === "controller" && e.word.startsWith("measure")) || (e.kind === "incident" && ["repeated", "absorbed"].includes(e.word));
}

function textOf(e: LiveRow): string {
  const d: Detail = e.detail ?? {};
  const why = d.why === undefined || d.why === "" ? "" : `: ${d.why}`;
  if (e.kind === "incident") {
    return `incident ${String(d.incident ?? "")} (${d.severity ?? ""}) ${e.word}: ${d.cause ?? ""}`;
  }
  if (e.kind === "host") {
    return hostWords[e.word] ?? e.word;
  }
  if (d.text !== undefined && d.text !== "") {
    return d.text;
  }
  if (configWords[e.word] !== undefined) {
    return `configuration, version ${String(d.version ?? "")}, ${configWords[e.word]}${why}`;
  }
  if (e.word.startsWith("level-")) {
    return `service level ${d.level ?? ""}: ${e.word.slice(6)}`;
  }
  return e.word.startsWith("observe-") ? `observe was switched ${e.word.slice(8)}${why}` : [e.word || e.kind, d.kind, d.host].filter(Boolean).join(" ");
}

function toneOf(e: LiveRow): Change["tone"] {
  return e.word === "resolved" || e.word === "heard" || e.word === "level-met" ? "good"
    : e.kind === "incident" || e.word === "level-broken" ? "bad"
    : ["silent", "over-quota", "reports-lost", "history-gap", "report-refused", "down"].includes(e.word) ? "warn" : "none";
}

/** Of rows that come newest first. all: findings and the like, too. */
export function changes(rows: readonly LiveRow[], all: boolean): Change[] {
  const found: (Change & { by: string | null; times: number; first: bigint })[] = [];
  for (const e of rows) {
    if (!all && isDetail(e)) {
      continue;
    }
    const detail: Detail = e.detail ?? {};
    const by = e.kind === "host" ? `host ${e.word}` : e.kind === "job" ? `job ${detail.job ?? ""} ${e.word}` : null;
    const at = big(e.at_utc_ns);
    const mate = by === null ? undefined : found.find((g) => g.by === by && g.first - at <= TOGETHER_NS);
    if (mate !== undefined) {
      mate.first = at;
      mate.times++;
      if (e.host !== null && !mate.hosts.includes(e.host)) {
        mate.hosts.push(e.host);
      }
      mate.text = e.kind === "job" ? `job ${detail.job ?? ""}: ${mate.times} times ${e.word}; the first: ${textOf(e)}` : mate.text;
    } else {
      found.push({ id: String(e.id), atNs: at, first: at, hosts: e.host === null ? [] : [e.host], who: detail.who ?? null, text: textOf(e), tone: toneOf(e), ...(configWords[e.word] !== undefined && detail.version !== undefined ? { version: detail.version } : {}), by, times: 1 });
    }
  }
  return found.map(({ by: _by, times: _times, first: _first, ...change }) => ({ ...change, hosts: change.hosts.sort((a, b) => a.localeCompare(b, undefined, { numeric: true })) }));
}

const told = /^(host\.join|config\.|incident\.|measurement\.)/; // by events, in better words

/** What people did beside it that is no event: silences, tokens, audits, removals. Newest first, as all. */
export function withPeople(of: readonly Change[], rows: readonly AuditRow[], since: bigint, until: bigint): Change[] {
  const done = rows.filter((a) => !told.test(a.what) && big(a.at_utc_ns) >= since && big(a.at_utc_ns) <= until)
    .map((a): Change => ({ id: `a${a.id}`, atNs: big(a.at_utc_ns), hosts: [], who: a.who, text: `${a.what.replace(".", ": ")}${a.detail === "" ? "" : ` – ${a.detail}`}`, tone: "none" }));
  return [...of, ...done].sort((a, b) => (a.atNs < b.atNs ? 1 : a.atNs > b.atNs ? -1 : 0));
}

/** What a version sets otherwise than the one before it: "flap_limit: 6 → 9". */
export function settingsOf(versions: readonly ConfigVersion[], version: Ns): string {
  const at = versions.findIndex((v) => big(v.version) === big(version));
  const [is, was] = [versions[at]?.settings ?? {}, versions.slice(at + 1).find((v) => v.state !== "taken-back")?.settings ?? {}];
  const text = (v: unknown) => (v === null || v === undefined ? "not set" : String(v));
  return at < 0 ? "" : Object.keys({ ...was, ...is }).filter((k) => text(is[k]) !== text(was[k])).map((k) => `${k}: ${text(was[k])} → ${text(is[k])}`).join(", ");
}

const NAMED = 6;

/** "host0, host1 and 6 more" */
export function named(hosts: readonly string[]): string {
  return hosts.length === 0 ? "–" : hosts.slice(0, NAMED).join(", ") + (hosts.length > NAMED ? ` and ${hosts.length - NAMED} more` : "");
}
