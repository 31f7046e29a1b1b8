// Mesh: one-way delay of every NIC pair as a heat map; a cell opens the pair's paths and their history.
import { useRef } from "preact/hooks";
import { decodeLatency, type Latency } from "../latency.ts";
import type { Page, Path, Series } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, place, shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { digits, duration, wall } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { HeatMap } from "../ui/heatmap.tsx";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { secondsOf } from "./clock.tsx";

export const pathTones: Record<Path["state"], Tone> = { alive: "good", suspect: "warn", lossy: "warn", dead: "bad", unknown: "none" };

const NEVER = 3_600_000; // what was doesn't change
const STEP = 10_000_000_000n; // of the history
const readLatency = async (response: Response) => decodeLatency(await response.arrayBuffer());

export function Mesh() {
  const { at, query, rest } = place.value;
  const latency = useResource<Latency>(`latency?format=binary${at === null ? "" : `&at=${at}`}`, at === null ? 10_000 : NEVER, at === null ? ["finding"] : [], readLatency);
  const last = useRef<Latency | null>(null); // on the way from one moment to another the map stays
  last.current = latency.data ?? (latency.failure ? null : last.current);
  const shown = { ...latency, data: last.current, at: latency.data ? latency.at : Date.now() };
  const [from, to] = rest.split("-").map(Number);
  return (
    <>
      <h1>Mesh</h1>
      <div class="row">
        <label>
          Delay{" "}
          <select value={query["p"] ?? ""} onChange={(e) => go({ query: { ...query, p: e.currentTarget.value } })}>
            <option value="">median</option>
            <option value="99">99th percentile</option>
          </select>
        </label>
        <button onClick={() => go({ at: (at ?? nowNs.peek()) - STEP })}>10 s earlier</button>
        {at !== null && <button onClick={() => go({ at: at + STEP })}>10 s later</button>}
        <span role="status" class={at === null ? "" : "warn"}>{moment(at, latency.data)}</span>
      </div>
      <Shown of={shown} what="one-way delays">
        {(data) => data.labels.length === 0 ? <Empty>No NIC has joined yet.</Empty>
          : <HeatMap latency={data} codes={query["p"] === "99" ? data.p99 : data.p50} onPick={(c, r) => go({ rest: `${data.ids[c]}-${data.ids[r]}` })} />}
      </Shown>
      {from !== undefined && to !== undefined && Number.isInteger(from) && Number.isInteger(to) && last.current && <Pair from={from} to={to} latency={last.current} />}
    </>
  );
}

/** Which moment the map is of. */
function moment(at: bigint | null, data: Latency | null): string {
  if (at === null || data === null) {
    return at === null ? "" : `The mesh at ${wall(at)} is looked up…`;
  }
  return `The mesh as it was at ${wall(at)}${data.stepS > 10 ? `, in steps of ${duration(data.stepS * 1e9)}` : ""}${data.from.length === 0 ? ": nothing was measured then, or it is no longer kept" : ""}.`;
}

function Pair({ from, to, latency }: { from: number; to: number; latency: Latency }) {
  const there = useResource<Page<Path>>(`paths?from=${from}&to=${to}`, 5_000, ["finding"]);
  const back = useResource<Page<Path>>(`paths?from=${to}&to=${from}`, 5_000, ["finding"]);
  const name = (id: number) => {
    return latency.labels[latency.ids.indexOf(id)] ?? `NIC ${id}`;
  };
  return (
    <>
      <h2>{name(from)} → {name(to)}</h2>
      {place.value.at !== null && <p class="dim">The two tables show the paths as they are now; the chart below them shows the range chosen.</p>}
      <Shown of={there} what="paths">{(page) => <Paths paths={page.items} caption={`Paths ${name(from)} → ${name(to)}`} />}</Shown>
      <Shown of={back} what="paths">{(page) => <Paths paths={page.items} caption={`Back: ${name(to)} → ${name(from)}`} />}</Shown>
      {there.data?.items[0] && <PathHistory path={there.data.items.find((p) => p.state === "dead" || p.state === "lossy") ?? there.data.items[0]} />}
    </>
  );
}

function Paths({ paths, caption }: { paths: Path[]; caption: string }) {
  if (paths.length === 0) {
    return <Empty>{caption}: nobody measures this direction.</Empty>;
  }
  return (
    <Table caption={caption} rows={paths} id={(p) => p.port} columns={[
      { name: "Path", cell: (p) => `port ${p.port}`, sort: (p) => p.port },
      { name: "Past", cell: (p) => p.switches?.map((s) => s ?? "a silent one").join(" · ") ?? (p.signature === null ? "not known" : `a way named ${p.signature.slice(0, 8)}`) },
      { name: "State", cell: (p) => <Mark tone={pathTones[p.state]}>{p.state}</Mark>, sort: (p) => p.state },
      { name: "Median", cell: (p) => duration(p.owd_ns_p50), sort: (p) => p.owd_ns_p50 ?? -1, number: true },
      { name: "p99", cell: (p) => duration(p.owd_ns_p99), sort: (p) => p.owd_ns_p99 ?? -1, number: true },
      { name: "Clock's bound", cell: (p) => (p.bound_ns === null ? "–" : `± ${duration(p.bound_ns)}`), number: true },
      { name: "Loss", cell: (p) => (p.loss_ppm === null ? "–" : `${digits(p.loss_ppm / 10_000)} %`), sort: (p) => p.loss_ppm ?? -1, number: true },
    ]} />
  );
}

function PathHistory({ path }: { path: Path }) {
  const { from, to } = shownRange(nowNs.value);
  const query = `from=${path.from}&to=${path.to}&port=${path.port}&since_utc_ns=${from - (from % 10_000_000_000n)}&until_utc_ns=${to - (to % 10_000_000_000n)}`;
  const p50 = useResource<Series>(`series?metric=owd_ns_p50&${query}`, 10_000);
  const p99 = useResource<Series>(`series?metric=owd_ns_p99&${query}`, 10_000);
  return (
    <Shown of={p50} what="the path's history">
      {(series) => <Chart title={`One-way delay, port ${path.port}`} seconds={secondsOf(series)} format={duration} lines={[{ name: "median", values: series.values }, ...(p99.data ? [{ name: "p99", values: p99.data.values }] : [])]} />}
    </Shown>
  );
}
