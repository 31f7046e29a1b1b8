// Mesh: one-way delay of every NIC pair as a heat map; a cell opens the pair's paths and their history.
import { useMemo } from "preact/hooks";
import type { Latency, Page, Path, Series } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, place, shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { digits, duration } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { HeatMap, type Matrix } from "../ui/heatmap.tsx";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { secondsOf } from "./clock.tsx";

const tones: Record<Path["state"], Tone> = { alive: "good", suspect: "warn", lossy: "warn", dead: "bad", unknown: "none" };

interface Named {
  nic: number;
  host: string;
  name: string;
}

export function matrixOf(latency: Latency, nics: readonly Named[], column: "owd_ns_p50" | "owd_ns_p99"): Matrix & { ids: number[] } {
  const ids = nics.map((n) => n.nic);
  const place = new Map(ids.map((id, i) => [id, i]));
  const size = ids.length;
  const values = new Float64Array(size * size).fill(Number.NaN);
  const which = column === "owd_ns_p50" ? 2 : 3;
  const dead = latency.states.indexOf("dead");
  const measured = new Uint32Array(latency.cells.length);
  let count = 0;
  for (const cell of latency.cells) {
    const from = place.get(cell[0]);
    const to = place.get(cell[1]);
    if (from !== undefined && to !== undefined) {
      const value = cell[5] === dead ? Infinity : (cell[which] ?? Number.NaN);
      const at = to * size + from;
      if (value === value && Number.isNaN(values[at])) {
        measured[count++] = at;
        values[at] = value;
      }
    }
  }
  return { labels: nics.map((n) => `${n.host}/${n.name}`), values, measured: measured.slice(0, count), ids };
}

export function Mesh() {
  const latency = useResource<Latency>("latency", 10_000, ["finding"]);
  const nics = useMemo(() => latency.data?.nics.map(([nic, host, name]): Named => ({ nic, host, name })) ?? null, [latency.data]);
  const percentile = place.value.query["p"] === "99" ? "owd_ns_p99" : "owd_ns_p50";
  const matrix = useMemo(() => (latency.data && nics ? matrixOf(latency.data, nics, percentile) : null), [latency.data, nics, percentile]);
  const [from, to] = place.value.rest.split("-").map(Number);
  return (
    <>
      <h1>Mesh</h1>
      <div class="row">
        <label>
          Delay{" "}
          <select value={percentile} onChange={(e) => go({ query: { ...place.value.query, p: e.currentTarget.value === "owd_ns_p99" ? "99" : "" } })}>
            <option value="owd_ns_p50">median</option>
            <option value="owd_ns_p99">99th percentile</option>
          </select>
        </label>
        {place.value.at !== null && <span class="warn">The map shows now; the paths below have the history of the range chosen.</span>}
      </div>
      <Shown of={latency} what="one-way delays">
        {() => (matrix === null ? <Empty>…</Empty> : matrix.labels.length === 0 ? <Empty>No NIC has joined yet.</Empty> : <HeatMap matrix={matrix} onPick={(c, r) => go({ rest: `${matrix.ids[c]}-${matrix.ids[r]}` })} />)}
      </Shown>
      {from !== undefined && to !== undefined && Number.isInteger(from) && Number.isInteger(to) && nics && <Pair from={from} to={to} nics={nics} />}
    </>
  );
}

function Pair({ from, to, nics }: { from: number; to: number; nics: Named[] }) {
  const there = useResource<Page<Path>>(`paths?from=${from}&to=${to}`, 5_000, ["finding"]);
  const back = useResource<Page<Path>>(`paths?from=${to}&to=${from}`, 5_000, ["finding"]);
  const name = (id: number) => {
    const nic = nics.find((n) => n.nic === id);
    return nic ? `${nic.host}/${nic.name}` : `NIC ${id}`;
  };
  return (
    <>
      <h2>{name(from)} → {name(to)}</h2>
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
      { name: "Hops", cell: (p) => p.signature?.slice(0, 8) ?? "not known" },
      { name: "State", cell: (p) => <Mark tone={tones[p.state]}>{p.state}</Mark>, sort: (p) => p.state },
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
