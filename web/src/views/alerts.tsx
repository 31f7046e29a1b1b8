// Alerts: incidents, one per cause, now or as they had been told by the moment chosen; one with its evidence and its story, which is
// where a receiver's link leads; whoever may, acknowledges.
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import type { Alert, Incident, IncidentRow, Page, Silence as Kept } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { hrefTo, place, shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { ago, duration, wall } from "../time.ts";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

export const severities: Record<string, Tone> = { page: "bad", warning: "warn", info: "none" };
const isOver = (i: Incident) => i.state === "resolved" || i.state === "merged";
const EARLIER_NS = 60_000_000_000n; // a story begins a little before its incident

/** Each incident as it was told last by that moment. Rows come newest first, and so does the answer. */
export function toldBy(rows: readonly IncidentRow[], moment: bigint): Incident[] {
  const last = new Map<string, Incident>();
  for (const row of rows) {
    if (row.detail !== null && big(row.at_utc_ns) <= moment && !last.has(String(row.detail.incident))) {
      last.set(String(row.detail.incident), row.detail);
    }
  }
  return [...last.values()];
}

export function Alerts() {
  const { at, query } = place.value;
  const one = query["incident"] ?? "";
  return (
    <>
      <h1>Alerts</h1>
      {/^\d{1,15}$/.test(one) && <One id={one} at={at} />}
      {at === null ? <Now /> : <Then at={at} />}
      <Silences />
    </>
  );
}

function Now() {
  const incidents = useResource<Page<Incident>>("incidents", 5_000, ["incident", "finding"]);
  return incidents.failure?.kind === "missing" ? <Empty>This controller evaluates no alert rules. The hosts' findings are in Fleet.</Empty> : (
    <Shown of={incidents} what="incidents">
      {(page) => page.items.length === 0 ? <Empty>No incident, open or recent.</Empty> : (
        <>{page.items.map((i) => <Sentence key={String(i.incident)} incident={i} again={incidents.again} />)}</>
      )}
    </Shown>
  );
}

/** Of a window that comes again, the first one is named. */
export function phase(s: Kept, now: bigint): "later" | "now" | "between windows" | "over" {
  const [from, length] = [big(s.from_utc_ns), big(s.until_utc_ns) - big(s.from_utc_ns)];
  if (now < from) {
    return "later";
  }
  return (s.every_ns === null ? now - from : (now - from) % BigInt(s.every_ns)) < length ? "now" : s.every_ns === null ? "over" : "between windows";
}

/** What is kept quiet, and until when: whoever is told nothing should know why. */
function Silences() {
  const silences = useResource<Page<Kept>>("silences", 30_000, ["controller"]);
  const [said, setSaid] = useState("");
  const now = nowNs.value;
  const end = async (id: number) => {
    const answer = await call("DELETE", `silences/${id}`);
    setSaid(answer.ok ? "Ended." : answer.failure.text);
    silences.again();
  };
  return silences.failure?.kind === "refused" || silences.failure?.kind === "missing" ? null : (
    <>
      <h2>Silences and maintenance</h2>
      <Shown of={silences} what="silences">
        {(page) => page.items.length === 0 ? <Empty>Nothing is silenced.</Empty> : (
          <Table caption="Silences, and their ends" rows={page.items} id={(s) => s.id} columns={[
            { name: "What", cell: (s) => [s.rule && `rule ${s.rule}`, s.host && `host ${s.host}`, s.element && `element ${s.element}`].filter(Boolean).join(", ") },
            { name: "Now", cell: (s) => <Mark tone={phase(s, now) === "now" ? "warn" : "none"}>{phase(s, now) !== "now" ? phase(s, now) : s.maintenance ? "maintenance" : "silenced"}</Mark> },
            { name: "From", cell: (s) => wall(big(s.from_utc_ns)) },
            { name: "Until", cell: (s) => `${wall(big(s.until_utc_ns))}${s.every_ns === null ? "" : `, each ${duration(s.every_ns)}`}` },
            { name: "By", cell: (s) => s.by ?? "–" },
            { name: "Why", cell: (s) => s.why ?? "–" },
            { name: "", cell: (s) => (phase(s, now) === "over" ? "" : <button onClick={() => void end(s.id)}>End silence</button>) },
          ]} />
        )}
      </Shown>
      <Silence again={silences.again} />
      <p role="status" aria-live="polite">{said}</p>
    </>
  );
}

const minutesOf: Record<string, number> = { "1 hour": 60, "4 hours": 240, "1 day": 1_440, "1 week": 10_080 };

/** A new one: at least one of the three, all that are given must match. */
function Silence({ again }: { again: () => void }) {
  const [element, setElement] = useState("");
  const [host, setHost] = useState("");
  const [rule, setRule] = useState("");
  const [why, setWhy] = useState("");
  const [length, setLength] = useState("1 hour");
  const [maintenance, setMaintenance] = useState(false);
  const [said, setSaid] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(Object.entries({ element, host, rule, why }).filter(([, text]) => text !== ""));
    const answer = await call<{ until_utc_ns: number | bigint }>("POST", "silences", { ...given, minutes: minutesOf[length], maintenance });
    setSaid(answer.ok ? `Silent until ${wall(big(answer.data.until_utc_ns))}.` : answer.failure.text);
    again();
  };
  return (
    <details>
      <summary>Silence something</summary>
      <form class="row" onSubmit={(e) => void submit(e)}>
        <label>Element <input placeholder="spine1, gpu-3/ib0" value={element} onInput={(e) => setElement(e.currentTarget.value)} /></label>
        <label>Host <input placeholder="gpu-3" value={host} onInput={(e) => setHost(e.currentTarget.value)} /></label>
        <label>Rule <input placeholder="link-down" value={rule} onInput={(e) => setRule(e.currentTarget.value)} /></label>
        <label>For <select value={length} onChange={(e) => setLength(e.currentTarget.value)}>{Object.keys(minutesOf).map((m) => <option key={m} value={m}>{m}</option>)}</select></label>
        <label>Why <input value={why} onInput={(e) => setWhy(e.currentTarget.value)} /></label>
        <label><input type="checkbox" checked={maintenance} onChange={(e) => setMaintenance(e.currentTarget.checked)} /> maintenance</label>
        <button type="submit" disabled={element === "" && host === "" && rule === ""}>Silence</button>
      </form>
      <p role="status" aria-live="polite">{said}</p>
    </details>
  );
}

function Then({ at }: { at: bigint }) {
  const { from } = shownRange(nowNs.value);
  const rows = useResource<Page<IncidentRow>>(`events?kind=incident&limit=1000&since_utc_ns=${from}&until_utc_ns=${at + 1n}`, 60_000);
  return (
    <>
      <h2>Notifications until {wall(at)}</h2>
      <p class="dim">Incidents with a notification in the {place.value.range} before, each with its last notification.</p>
      <Shown of={rows} what="incidents">
        {(page) => {
          const told = toldBy(page.items, at);
          return told.length === 0 ? <Empty>There was no notification in this range.</Empty> : <>{told.map((i) => <Sentence key={String(i.incident)} incident={i} />)}</>;
        }}
      </Shown>
    </>
  );
}

function One({ id, at }: { id: string; at: bigint | null }) {
  const incident = useResource<Incident>(`incidents/${id}`, 5_000, ["incident", "finding"]);
  const since = incident.data?.since_utc_ns ?? null;
  const begin = at ?? (since === null ? shownRange(nowNs.value).from : big(since));
  const rows = useResource<Page<IncidentRow>>(at === null && incident.data === null ? null : `events?kind=incident&after=0&limit=1000&since_utc_ns=${begin - EARLIER_NS}`, 10_000, ["incident"]);
  const alerts = useResource<Page<Alert>>("alerts", 5_000, ["incident", "finding"]);
  const story = (rows.data?.items ?? []).filter((row) => row.detail !== null && String(row.detail.incident) === id);
  const firing = (alerts.data?.items ?? []).filter((a) => a.incident !== null && String(a.incident) === id);
  const known = incident.data ?? story.at(-1)?.detail ?? null;
  if (known === null) {
    const waits = (incident.data === null && incident.failure === null) || (at !== null && rows.data === null && rows.failure === null);
    return <Empty>{waits ? `Loading incident ${id}…` : `Incident ${id} is not here: it ended long ago, or this token may not see it.`}</Empty>;
  }
  return (
    <section aria-label={`Incident ${id}`}>
      <h2>Incident {id}{known.cause === null ? "" : `: ${known.cause}`}</h2>
      <Sentence incident={known} again={incident.again} />
      {firing.length > 0 && (
        <Table caption="Evidence: alerts that fire in it now" rows={firing} id={(a) => String(a.id)} columns={[
          { name: "Rule", cell: (a) => a.rule },
          { name: "State", cell: (a) => <Mark tone={a.state === "firing" ? (severities[a.severity] ?? "warn") : "none"}>{a.severity}, {a.state}</Mark> },
          { name: "Since", cell: (a) => (a.since_utc_ns === null ? "–" : wall(big(a.since_utc_ns))) },
          { name: "In words", cell: (a) => a.text },
        ]} />
      )}
      {story.length > 0 && (
        <Table caption="Notifications about it" rows={story} id={(r) => String(r.id)} columns={[
          { name: "When", cell: (r) => <time title={String(r.at_utc_ns)}>{wall(big(r.at_utc_ns))}</time> },
          { name: "What", cell: (r) => r.word },
          { name: "In words", cell: (r) => r.detail?.text ?? "" },
        ]} />
      )}
    </section>
  );
}

/** again: of what can be acknowledged. */
function Sentence({ incident: i, again }: { incident: Incident; again?: () => void }) {
  const [said, setSaid] = useState("");
  const now = nowNs.value;
  const over = isOver(i);
  const since = i.since_utc_ns === null ? null : big(i.since_utc_ns);
  const acknowledge = async () => {
    const answer = await call("POST", `incidents/${i.incident}`, { acknowledge: true });
    setSaid(answer.ok ? `Incident ${i.incident} is yours.` : answer.failure.text);
    again?.();
  };
  return (
    <article class={`sentence ${over ? "good" : "bad"}`}>
      <p>{i.text}</p>
      <p class="dim">
        <Mark tone={over ? "good" : (severities[i.severity] ?? "warn")}>{over ? i.state : `${i.severity}, ${i.state}`}</Mark>{" "}
        {since !== null && <>since {wall(since)} ({ago(since, now)}) · </>}{i.alerts} of {i.alerts_total} alerts fire, {i.hosts} hosts
        {i.silenced && " · silenced"}{i.acknowledged_by !== null && ` · acknowledged by ${i.acknowledged_by}`} ·{" "}
        <a href={hrefTo({ view: "alerts", query: { incident: String(i.incident) }, at: since })}>incident {String(i.incident)}</a> ·{" "}
        <a href={hrefTo({ view: "mesh", at: since })}>the mesh at that moment</a> · <a href={hrefTo({ view: "fleet", at: since })}>what was wrong then</a>{" "}
        {again !== undefined && !over && i.acknowledged_by === null && <button onClick={() => void acknowledge()}>Acknowledge</button>}
      </p>
      <p role="status" aria-live="polite">{said}</p>
    </article>
  );
}
