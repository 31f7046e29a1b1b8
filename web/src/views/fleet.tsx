// Fleet: is it healthy, what is wrong and where, what changed in the range shown, is Foliot itself healthy?
import { useState } from "preact/hooks";
import { changes, isDetail, named, settingsOf, withPeople } from "../changes.ts";
import type { AuditRow, ConfigVersion, Fabric, Finding, Host, Incident, LiveRow, Page, Port, Status } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place, shownRange } from "../route.ts";
import { suspectsOf } from "../suspect.ts";
import { ago, bytes, duration, wall } from "../time.ts";
import { SmallFabric } from "../ui/small_fabric.tsx";
import { Cut, Empty, Mark, shapes, Shown, Tile, type Tone } from "../ui/state.tsx";
import { FindingSentence } from "../ui/sentence.tsx";
import { Table } from "../ui/table.tsx";
import { nowNs } from "../now.ts";
import { severities } from "./alerts.tsx";
import { Check } from "./check.tsx";
import { Unwatched, UnwatchedTiles } from "./unwatched.tsx";

export const healthTones: Record<Host["health"], Tone> = { ok: "good", warn: "warn", bad: "bad", unknown: "none" };

export function Fleet() {
  const status = useResource<Status>("status", 5_000, ["finding", "link", "host"]);
  const now = nowNs.value;
  const { from, to } = shownRange(now);
  const at = place.value.at;
  const open = useResource<Page<Finding>>(`findings?${at === null ? "open=true" : `since_utc_ns=${at}&until_utc_ns=${at + MOMENT_NS}`}&limit=50`, 5_000, ["finding"]);
  const events = useResource<Page<LiveRow>>(`events?limit=1000&since_utc_ns=${round(from)}&until_utc_ns=${round(to)}`, 10_000, ["finding", "link", "host", "incident", "controller"]);
  const people = useResource<Page<AuditRow>>("audit?limit=1000", 10_000, ["controller"]); // an administrator's: others see what events tell
  const versions = useResource<Page<ConfigVersion>>("config/versions", 10_000, ["controller"]);
  const health = place.value.query["health"] ?? "";
  const hosts = useResource<Page<Host>>(`hosts?limit=1000${health === "" ? "" : `&health=${encodeURIComponent(health)}`}`, 10_000, ["host"]);
  const incidents = useResource<Page<Incident>>("incidents?open=true", 5_000, ["incident", "finding"]);
  return (
    <>
      <h1>Fleet</h1>
      <Shown of={status} what="the fleet's state">{(s) => <Tiles s={s} incidents={incidents.failure === null ? (incidents.data?.items ?? null) : null} />}</Shown>
      <Unwatched status={status.data} />
      <h2>{at === null ? "What is wrong now" : `What was wrong at ${wall(at)}`}</h2>
      {at === null && <Incidents of={incidents.data?.items ?? []} />}
      <Shown of={open} what="findings">
        {(page) => page.items.length === 0 ? <NothingFound s={at === null ? status.data : null} /> : <Findings page={page} now={now} folded={at === null && (incidents.data?.items.length ?? 0) > 0} />}
      </Shown>
      <h2>What changed</h2>
      <Shown of={events} what="events">{(page) => <Changes page={page} people={people.data?.items ?? []} versions={versions.data?.items ?? []} since={from} until={to} />}</Shown>
      <h2>Hosts</h2>
      <p>
        <label>Health{" "}
          <select value={health} onChange={(e) => go({ query: { ...place.value.query, health: e.currentTarget.value } })}>
            <option value="">all</option>
            {Object.keys(healthTones).map((word) => <option key={word} value={word}>{word}</option>)}
          </select>
        </label>
      </p>
      <Shown of={hosts} what="hosts">
        {(page) => page.items.length > 0 ? <Hosts hosts={page.items} more={page.next !== null} />
          : <Empty>{health === "" ? <>No host has joined yet: <code>foliot-agent join ADDRESS TOKEN</code> on each.</> : `The health of no host is ${health}.`}</Empty>}
      </Shown>
      {hosts.data !== null && hosts.data.items.length > 0 && <Check hosts={hosts.data.items.map((h) => h.name)} />}
      {status.data !== null && <Itself s={status.data} />}
    </>
  );
}

/** Each with its place in the fabric; what nobody has seen yet first. */
function Incidents({ of }: { of: readonly Incident[] }) {
  const drawn = of.some((i) => i.element !== undefined && i.element !== null);
  const fabric = useResource<Fabric>(drawn ? "fabric?limit=1" : null, 30_000);
  const ports = useResource<Page<Port>>(drawn ? "links?limit=1000" : null, 30_000, ["link"]);
  const own = useResource<Page<Port>>(drawn ? "links?limit=1000&incident=any" : null, 30_000, ["link", "incident"]); // theirs, wherever they are in a large fleet
  const seen = (i: Incident) => (i.acknowledged_by !== null || i.silenced ? 1 : 0);
  const now = nowNs.value;
  return (
    <>
      {[...of].sort((a, b) => seen(a) - seen(b)).map((i) => (
        <article key={String(i.incident)} class={`sentence incident ${seen(i) > 0 ? "" : "bad"}`}>
          {i.element && fabric.data && ports.data && <SmallFabric fabric={fabric.data} ports={[...ports.data.items, ...(own.data?.items ?? [])]} elements={i.one_of?.length ? i.one_of : [i.element]} may={(i.one_of?.length ?? 0) > 0} />}
          <div>
            <h3>{i.cause ?? "Cause not known"}</h3>
            <p class="dim">
              <Mark tone={severities[i.severity] ?? "warn"}>{i.severity}</Mark>{i.since_utc_ns === null ? "" : <> since <time>{wall(big(i.since_utc_ns))}</time> ({ago(big(i.since_utc_ns), now)})</>},
              {" "}{i.alerts} alerts of {i.hosts} hosts{i.acknowledged_by === null ? "" : `; seen by ${i.acknowledged_by}`}{i.silenced ? "; silenced" : ""} ·{" "}
              <a href={hrefTo({ view: "alerts", query: { incident: String(i.incident) } })}>evidence and history</a>
            </p>
            <p>{i.text}</p>
          </div>
        </article>
      ))}
    </>
  );
}

/** folded: incidents tell it already. */
function Findings({ page, now, folded }: { page: Page<Finding>; now: bigint; folded: boolean }) {
  const list = <><Cut page={page} what="findings" />{page.items.map((f) => <FindingSentence key={String(f.id)} finding={f} now={now} />)}</>;
  return folded ? <details><summary>Findings of hosts: {page.items.length}{page.next === null ? "" : " and more"}</summary>{list}</details> : list;
}

/** Nothing is found is not nothing is wrong: ports and paths are counted beside it. s: null: of a moment in the past. */
function NothingFound({ s }: { s: Status | null }) {
  const [down, dead] = [s === null ? 0 : s.ports.down + s.ports.gone, s?.paths.dead ?? 0];
  return down + dead === 0 ? <Empty>{s !== null ? "Nothing is found wrong by any host that reports." : "Nothing that any host reported was wrong then."}</Empty> : (
    <p class="sentence bad">
      No host has named a fault, but {down > 0 && <><a href={hrefTo({ view: "links", query: { state: stateOf(s!) } })}>{down} {down === 1 ? "link is" : "links are"} down</a></>}{down > 0 && dead > 0 && " and "}
      {dead > 0 && <><a href={hrefTo({ view: "mesh" })}>{dead} {dead === 1 ? "path is" : "paths are"} dead</a>: <a href={hrefTo({ view: "topology" })}>Topology</a> tells which trunks they share</>}.
    </p>
  );
}

/** What Links is asked for; "": it has the worst on top. */
const stateOf = (s: Status) => (s.ports.down > 0 && s.ports.gone === 0 ? "down" : s.ports.gone > 0 && s.ports.down === 0 ? "gone" : "");

function Changes({ page, people, versions, since, until }: { page: Page<LiveRow>; people: AuditRow[]; versions: ConfigVersion[]; since: bigint; until: bigint }) {
  const [all, setAll] = useState(false);
  const [byPeople, setByPeople] = useState(false);
  const rows = withPeople(changes(page.items, all), people, since, until).filter((c) => !byPeople || c.who !== null);
  const sets = (c: (typeof rows)[number]) => (c.version === undefined ? "" : settingsOf(versions, c.version));
  const details = page.items.filter(isDetail).length;
  return (
    <>
      <Cut page={page} what="events of this range" />
      <p><label><input type="checkbox" checked={byPeople} onChange={(e) => setByPeople(e.currentTarget.checked)} /> only what people changed</label></p>
      {rows.length === 0 ? <Empty>{byPeople ? "Nobody changed anything in this range." : "Nothing in this range."}</Empty> : (
        <Table caption="Changes, newest first" rows={rows} most={12} id={(c) => c.id} columns={[
          { name: "When", cell: (c) => <time title={String(c.atNs)}>{wall(c.atNs)}</time> },
          { name: "Where", cell: (c) => <span title={c.hosts.join(", ")}>{named(c.hosts)}</span> },
          { name: "What", cell: (c) => <>{c.tone !== "none" && <span class={c.tone} aria-hidden="true">{shapes[c.tone]} </span>}{c.text}{sets(c) !== "" && <><br /><strong>{sets(c)}</strong></>}</> },
          { name: "Who", cell: (c) => c.who ?? "–" },
        ]} />
      )}
      {details > 0 && <p><label><input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} /> with the {details} that an incident tells already</label></p>}
    </>
  );
}

const MOMENT_NS = 1_000_000_000n; // what is found within a second of a moment is found then

function round(ns: bigint): string {
  return (ns - (ns % 10_000_000_000n)).toString(); // the same address for 10 s: the answer can be kept
}

/** incidents: null: not known. */
function Tiles({ s, incidents }: { s: Status; incidents: Incident[] | null }) {
  const silent = s.freshness.stale + s.freshness.never;
  const accused = incidents === null ? null : new Set(suspectsOf(incidents).filter((i) => i.element.kind === "nic" || i.element.kind === "host").map((i) => i.element.name)).size;
  const mine = incidents?.filter((i) => i.acknowledged_by === null && !i.silenced).length ?? 0;
  return (
    <>
      <div class="tiles">
        <Tile label="Incidents open" tone={incidents === null ? "none" : mine > 0 ? "bad" : incidents.length > 0 ? "warn" : "good"} href={hrefTo({ view: "alerts" })}>{incidents === null ? "–" : `${incidents.length}${incidents.length > mine ? ` (${incidents.length - mine} seen or silenced)` : ""}`}</Tile>
        <Tile label="Hosts healthy" tone={s.health.bad > 0 ? "bad" : s.health.warn + s.health.unknown > 0 ? "warn" : "good"} href={hrefTo({ query: { health: s.health.bad > 0 ? "bad" : s.health.unknown > 0 ? "unknown" : s.health.warn > 0 ? "warn" : "" } })}>{s.health.ok} of {s.hosts}</Tile>
        <Tile label="Hosts that don't report" tone={silent > 0 ? "bad" : "good"}>{silent}</Tile>
        <Tile label="Clocks synchronised" tone={s.clocks.synced < s.hosts ? "warn" : "good"} href={hrefTo({ view: "clock" })}>{s.clocks.synced} of {s.hosts}</Tile>
        <Tile label="Widest likely error" href={hrefTo({ view: "clock" })}>{s.clock_statistical_ns_max === null ? "–" : `± ${duration(s.clock_statistical_ns_max)}`}</Tile>
        <Tile label="Links down" tone={s.ports.down + s.ports.gone > 0 ? "bad" : s.ports.unknown > 0 ? "warn" : "good"} href={hrefTo({ view: "links", query: { state: stateOf(s) } })}>{s.ports.down + s.ports.gone}{s.ports.unknown > 0 ? ` (${s.ports.unknown} unknown)` : ""}</Tile>
        {accused !== null && accused > 0 && <Tile label="NICs and hosts accused" tone="bad" href={hrefTo({ view: "links", query: { incident: "accused" } })}>{accused}</Tile>}
        <Tile label="Paths dead / lossy" tone={s.paths.dead > 0 ? "bad" : s.paths.lossy > 0 ? "warn" : "good"} href={hrefTo({ view: "mesh" })}>{s.paths.dead} / {s.paths.lossy} of {s.paths.measured}</Tile>
      </div>
    </>
  );
}

function Itself({ s }: { s: Status }) {
  return (
    <>
      <h2>Foliot itself</h2>
      <div class="tiles">
        <Tile label="Store" tone={s.store.writable ? "good" : "bad"}>{!s.store.writable ? "cannot be written" : s.store.file_bytes === null ? "is written" : bytes(s.store.file_bytes)}</Tile>
        {s.ingest !== null && (
          <>
            <Tile label="Slowest commit">{duration(s.store.commit_ns_max)}</Tile>
            <Tile label="Reports missing" tone={s.ingest.gaps > 0 ? "warn" : "good"}>{s.ingest.gaps}</Tile>
            <Tile label="Refused or malformed" tone={s.ingest.malformed + s.ingest.refused > 0 ? "warn" : "good"}>{s.ingest.malformed + s.ingest.refused}</Tile>
          </>
        )}
        <UnwatchedTiles s={s} />
        <Tile label="Certificates ending soon" tone={s.certificates_ending > 0 ? "warn" : "good"}>{s.certificates_ending}</Tile>
        <Tile label="Controller">{s.controller_version}</Tile>
      </div>
    </>
  );
}

const worry: Record<Host["health"], number> = { bad: 3, unknown: 2, warn: 1, ok: 0 };

function Hosts({ hosts, more }: { hosts: Host[]; more: boolean }) {
  const now = nowNs.value;
  const sorted = [...hosts].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  return (
    <>
      {more && <p class="banner" role="status">The first {hosts.length} of them; filter by health to find others.</p>}
      <Table caption="Hosts" rows={sorted} id={(h) => h.name} first="Health" most={50} columns={[
        { name: "Host", cell: (h) => <a href={hrefTo({ view: "hosts", rest: h.name })}>{h.name}</a>, sort: (h) => h.name },
        { name: "Health", cell: (h) => <Mark tone={healthTones[h.health]}>{h.health}</Mark>, sort: (h) => worry[h.health] * 1e6 + (h.paths_dead ?? 0) },
        { name: "Heard", cell: (h) => (h.heard_utc_ns === null ? "never" : ago(big(h.heard_utc_ns), now)), sort: (h) => Number(h.heard_utc_ns ?? 0) },
        { name: "Clock", cell: (h) => <span title={h.clock.why ?? ""}>{h.clock.status.toLowerCase()}</span>, sort: (h) => h.clock.status },
        { name: "NICs up", cell: (h) => `${h.nics_up ?? "–"} of ${h.nics}`, sort: (h) => h.nics_up ?? -1, number: true },
        { name: "Paths dead", cell: (h) => h.paths_dead ?? "–", sort: (h) => h.paths_dead ?? -1, number: true },
        { name: "Findings", cell: (h) => h.findings_open, sort: (h) => h.findings_open, number: true },
        { name: "Agent", cell: (h) => (h.agent.cpu_ppm === null ? "–" : `${(h.agent.cpu_ppm / 10_000).toFixed(2)} %, ${bytes(h.agent.memory_bytes)}`), sort: (h) => h.agent.cpu_ppm ?? -1, number: true },
      ]} />
    </>
  );
}
