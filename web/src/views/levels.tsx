// Levels: the service levels that the fleet is to keep: met, broken or unknown, since when, by whom; each leads to its evidence.
import type { Level, Levels as Answer, LiveRow, Page } from "../model.ts";
import { big } from "../model.ts";
import { nowNs } from "../now.ts";
import { useResource } from "../resource.ts";
import { hrefTo, shownRange } from "../route.ts";
import { ago, digits, duration, wall } from "../time.ts";
import { Empty, Mark, Shown, Tile, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

export const levelTones: Record<Level["state"], Tone> = { met: "good", broken: "bad", unknown: "none" };
const worry: Record<Level["state"], number> = { broken: 2, unknown: 1, met: 0 };
const measures: Record<string, string> = { owd_p50: "median one-way delay", owd_p99: "p99 one-way delay", loss: "loss", hops: "hops" };
const places: Record<string, string> = { leaf: "within a rack", pod: "within a pod", rail: "within a rail", fleet: "in the fleet" };

/** A level's values as people read them. */
export function amount(level: Level, value: number): string {
  return level.unit === "ns" ? duration(value) : level.unit === "ppm" ? `${digits(value / 10_000)} %` : String(value);
}

export function rule(level: Level): string {
  return `${measures[level.measure] ?? level.measure} ${places[level.within] ?? level.within} ≤ ${amount(level, level.limit)}`;
}

export function Levels() {
  const levels = useResource<Answer>("levels", 5_000, ["controller"]);
  return (
    <>
      <h1>Levels</h1>
      {levels.failure?.kind === "missing" ? <Empty>This controller's version has no service levels.</Empty> : (
        <Shown of={levels} what="service levels">
          {(answer) => (
            <>
              {answer.error !== null && <p class="banner" role="status">levels.yaml was refused, and the old levels stay in force: {answer.error}</p>}
              {answer.items.length === 0 ? <Empty>No service level is set: <code>/etc/foliot/levels.yaml</code> on the controller sets them.</Empty> : <List items={answer.items} />}
            </>
          )}
        </Shown>
      )}
      <Changes />
    </>
  );
}

function List({ items }: { items: Level[] }) {
  const now = nowNs.value;
  const count = (state: Level["state"]) => items.filter((l) => l.state === state).length;
  return (
    <>
      <div class="tiles">
        <Tile label="Broken" tone={count("broken") > 0 ? "bad" : "none"}>{count("broken")}</Tile>
        <Tile label="Not known: nothing is measured" tone={count("unknown") > 0 ? "warn" : "none"}>{count("unknown")}</Tile>
        <Tile label="Met" tone={count("met") === items.length ? "good" : "none"}>{count("met")} of {items.length}</Tile>
      </div>
      <Table caption="Limits for paths" rows={items} id={(l) => l.name} first="State" columns={[
        { name: "Level", cell: (l) => <><strong>{l.name}</strong><br /><span class="dim">{rule(l)}</span></>, sort: (l) => l.name },
        { name: "State", cell: (l) => <Mark tone={levelTones[l.state]}>{l.state}</Mark>, sort: (l) => worry[l.state] },
        { name: "Since", cell: (l) => (l.since_utc_ns === null ? "–" : <a title="The mesh at that moment" href={hrefTo({ view: "mesh", at: big(l.since_utc_ns) })}>{ago(big(l.since_utc_ns), now)}</a>), sort: (l) => Number(l.since_utc_ns ?? 0) },
        { name: "Paths beyond", cell: (l) => `${l.paths_beyond} of ${l.paths}${l.paths_unmeasured > 0 ? `, ${l.paths_unmeasured} not measured` : ""}`, sort: (l) => l.paths_beyond, number: true },
        { name: "Worst", cell: (l) => (l.worst === null ? "–" : <a href={hrefTo({ view: "mesh", rest: `${l.worst.from_nic}-${l.worst.to_nic}` })}>{amount(l, l.worst.value)}, {l.worst.from ?? "?"} → {l.worst.to ?? "?"}</a>), sort: (l) => l.worst?.value ?? -1 },
        { name: "By", cell: (l) => (l.by.length === 0 ? "–" : l.by.map((b) => <div key={b.nic_id}>{b.nic ?? `NIC ${b.nic_id}`}: {b.paths_beyond} {b.paths_beyond === 1 ? "path" : "paths"}</div>)) },
      ]} />
    </>
  );
}

/** What became of levels in the range shown. */
function Changes() {
  const now = nowNs.value;
  const { from, to } = shownRange(now);
  const round = (ns: bigint) => ns - (ns % 10_000_000_000n);
  const events = useResource<Page<LiveRow>>(`events?kind=controller&limit=1000&since_utc_ns=${round(from)}&until_utc_ns=${round(to) + 10_000_000_000n}`, 10_000, ["controller"]);
  return (
    <>
      <h2>What changed</h2>
      <Shown of={events} what="events">
        {(page) => {
          const rows = page.items.filter((e) => e.word.startsWith("level-"));
          return rows.length === 0 ? <Empty>No level changed in this range.</Empty> : (
            <Table caption="Changes, newest first" rows={rows} id={(e) => String(e.id)} columns={[
              { name: "When", cell: (e) => <a title="The mesh at that moment" href={hrefTo({ view: "mesh", at: big(e.at_utc_ns) })}>{wall(big(e.at_utc_ns))}</a> },
              { name: "Level", cell: (e) => e.detail?.level ?? "–" },
              { name: "Became", cell: (e) => e.word.slice("level-".length) },
              { name: "Paths beyond", cell: (e) => (e.detail?.paths === undefined ? "–" : `${e.detail.beyond} of ${e.detail.paths}`), number: true },
            ]} />
          );
        }}
      </Shown>
    </>
  );
}
