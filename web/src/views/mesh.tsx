// Mesh: one-way delay of every pair as a heat map, by leaf, host or NIC; a cell opens the level below, and a pair of NICs its paths and
// their history.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { cellOf, decodeLatency, fold, type Latency, type Level, pick } from "../latency.ts";
import type { Incident, Page, Path, Series } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place, shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { suspectsOf } from "../suspect.ts";
import { digits, duration, wall } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { marksOf } from "../ui/axes.ts";
import { HeatMap, words } from "../ui/heatmap.tsx";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { secondsOf } from "./clock.tsx";

export const pathTones: Record<Path["state"], Tone> = { alive: "good", suspect: "warn", lossy: "warn", dead: "bad", unknown: "none" };

const NEVER = 3_600_000; // what was doesn't change
const STEP = 10_000_000_000n; // of the history
const readLatency = async (response: Response) => decodeLatency(await response.arrayBuffer());

export function Mesh() {
  const { at, rest } = place.value;
  const latency = useResource<Latency>(`latency?format=binary2${at === null ? "" : `&at=${at}`}`, at === null ? 10_000 : NEVER, at === null ? ["finding"] : [], readLatency);
  const last = useRef<Latency | null>(null); // on the way from one moment to another the map stays
  last.current = latency.data ?? (latency.failure ? null : last.current);
  const shown = { ...latency, data: last.current, at: latency.data ? latency.at : Date.now() };
  const [from, to] = rest.split("-").map(Number);
  return (
    <>
      <h1>Mesh</h1>
      <Shown of={shown} what="one-way delays">
        {(data) => (data.labels.length === 0 ? <Empty>No NIC has joined yet.</Empty> : <Map latency={data} bar={<Bar at={at} data={latency.data} />} />)}
      </Shown>
      {from !== undefined && to !== undefined && Number.isInteger(from) && Number.isInteger(to) && last.current && <Pair from={from} to={to} latency={last.current} />}
    </>
  );
}

/** Which delay, and which moment. */
function Bar({ at, data }: { at: bigint | null; data: Latency | null }) {
  const { query } = place.value;
  return (
    <>
      <label>
        Delay{" "}
        <select value={query["p"] ?? ""} onChange={(e) => go({ query: { ...query, p: e.currentTarget.value } })}>
          <option value="">median</option>
          <option value="99">99th percentile</option>
        </select>
      </label>
      <button onClick={() => go({ at: (at ?? nowNs.peek()) - STEP })}>10 s earlier</button>
      {at !== null && <button onClick={() => go({ at: at + STEP })}>10 s later</button>}
      <span role="status" class={at === null ? "" : "warn"}>{moment(at, data)}</span>
    </>
  );
}

const FITS = 256; // rows that can be told apart on a screen
const plural: Record<Level, string> = { nic: "NICs", host: "hosts", leaf: "leaves" };

/** The finest level whose rows can be told apart. */
export function levelFor(latency: Latency): Level {
  const leaves = new Set(latency.places.map((p) => p.leaf)).size;
  const hosts = new Set(latency.places.map((p) => p.host)).size;
  return latency.labels.length <= FITS ? "nic" : hosts <= FITS || leaves < 2 ? "host" : "leaf";
}

function Map({ latency, bar }: { latency: Latency; bar: preact.JSX.Element }) {
  const incidents = useResource<Page<Incident>>(place.value.at === null ? "incidents?open=true" : null, 5_000, ["incident", "finding"]); // of now: none are known of then
  const marks = useMemo(() => marksOf(latency, suspectsOf(incidents.data?.items ?? [])), [latency, incidents.data]);
  const { query } = place.value;
  const { in: within = "", a = "", b = "" } = query;
  const part = useMemo(() => {
    const inside = (i: number) => within === "leaf" ? [a, b].includes(latency.places[i]!.leaf || "leaf not known") : [a, b].includes(latency.places[i]!.host);
    return within === "" ? latency : pick(latency, latency.labels.map((_, i) => i).filter(inside));
  }, [latency, within, a, b]);
  const level = query["level"] === "nic" || query["level"] === "host" || query["level"] === "leaf" ? query["level"] : levelFor(part);
  const shown = useMemo(() => (level === "nic" ? part : fold(part, level)), [part, level]);
  const codes = query["p"] === "99" ? shown.p99 : shown.p50;
  const open = (column: number, row: number) => {
    const deeper = { leaf: "host", host: "nic" } as const;
    if (level === "nic") {
      go({ rest: `${shown.ids[column]}-${shown.ids[row]}` });
    } else {
      go({ rest: "", query: { ...query, level: deeper[level], in: level, a: shown.labels[column]!, b: shown.labels[row]! } });
    }
  };
  return (
    <>
      <div class="row">
        <label>Rows{" "}
          <select value={level} onChange={(e) => go({ query: { ...query, level: e.currentTarget.value } })}>
            {(["leaf", "host", "nic"] as const).map((l) => <option key={l} value={l}>{plural[l]}</option>)}
          </select>
        </label>
        {bar}
        {within !== "" && <span>of {a === b ? a : `${a} and ${b}`} <button onClick={() => go({ rest: "", query: { p: query["p"] ?? "" } })}>Of the whole fleet</button></span>}
      </div>
      <div class="mesh">
        <HeatMap latency={shown} codes={codes} what={plural[level]} marks={marks} onPick={open} />
        <Worst latency={part} codes={query["p"] === "99" ? part.p99 : part.p50} open={(column, row) => go({ rest: `${part.ids[column]}-${part.ids[row]}` })} />
      </div>
    </>
  );
}

const WORST = 8;

export interface Spot { column: number; row: number }

/** Of all pairs: those with the largest share of dead paths, and the slowest, indices of NICs. A NIC all of whose paths are dead, to all
 *  or from all, is told once: its pairs would hide every other. */
export function worstPairs(latency: Latency, codes: Int16Array, most: number): { mute: number[]; deaf: number[]; dead: Spot[]; slow: Spot[] } {
  const size = latency.ids.length;
  const count = { out: new Uint32Array(size), outDead: new Uint32Array(size), in: new Uint32Array(size), inDead: new Uint32Array(size) };
  const each = (see: (i: number, column: number, row: number) => void) => {
    for (let row = 0; row < size; row++) {
      for (let i = latency.first[row]!, end = latency.first[row + 1]!; i < end; i++) {
        see(i, latency.from[i]!, row);
      }
    }
  };
  each((i, column, row) => {
    const gone = latency.paths[i]! > 0 && latency.dead[i]! >= latency.paths[i]! ? 1 : 0;
    count.out[column]!++;
    count.in[row]!++;
    count.outDead[column]! += gone;
    count.inDead[row]! += gone;
  });
  const whole = (n: Uint32Array, gone: Uint32Array) => [...n.keys()].filter((i) => n[i]! > 1 && n[i] === gone[i]);
  const [mute, deaf] = [whole(count.out, count.outDead), whole(count.in, count.inDead)];
  const [isMute, isDeaf] = [new Set(mute), new Set(deaf)];
  const top = () => {
    const found: (Spot & { worth: number })[] = [];
    return { found, add: (column: number, row: number, worth: number) => {
      if (worth > 0 && (found.length < most || worth > found[found.length - 1]!.worth)) {
        found.splice(found.findIndex((f) => f.worth < worth) >>> 0, 0, { column, row, worth });
        found.length = Math.min(found.length, most);
      }
    } };
  };
  const [dead, slow] = [top(), top()];
  each((i, column, row) => {
    slow.add(column, row, codes[i]!);
    if (!isMute.has(column) && !isDeaf.has(row)) {
      dead.add(column, row, latency.dead[i]! / Math.max(1, latency.paths[i]!));
    }
  });
  const spots = (found: readonly Spot[]) => found.map(({ column, row }) => ({ column, row }));
  return { mute, deaf, dead: spots(dead.found), slow: spots(slow.found) };
}

/** Of NICs, at whatever level the map is: that is where a fault is. */
function Worst({ latency, codes, open }: { latency: Latency; codes: Int16Array; open: (column: number, row: number) => void }) {
  const { mute, deaf, dead, slow } = useMemo(() => worstPairs(latency, codes, WORST), [latency, codes]);
  const line = ({ column, row }: Spot) => (
    <li key={`${column}-${row}`}>
      <button class="link" onClick={() => open(column, row)}>{latency.labels[column]} → {latency.labels[row]}</button>
      <span>{words(cellOf(latency, codes, column, row), latency.atNs)}</span>
    </li>
  );
  const name = (i: number) => <a href={hrefTo({ view: "hosts", rest: latency.places[i]!.host })}>{latency.labels[i]}</a>;
  return (
    <section aria-label="The worst pairs">
      <h2>The worst pairs of NICs</h2>
      <h3>The longest delay</h3>
      {slow.length === 0 ? <Empty>No delay is measured.</Empty> : <ol class="worst">{slow.map(line)}</ol>}
      <h3>The most dead paths</h3>
      {mute.length + deaf.length + dead.length === 0 ? <p class="dim">No path is dead.</p> : (
        <ol class="worst">
          {mute.slice(0, WORST).map((i) => <li key={`m${i}`}>{name(i)}<span class="bad">■ all paths from it are dead</span></li>)}
          {deaf.slice(0, WORST).map((i) => <li key={`d${i}`}>{name(i)}<span class="bad">■ all paths to it are dead</span></li>)}
          {dead.map(line)}
        </ol>
      )}
    </section>
  );
}

/** Which moment the map is of. */
function moment(at: bigint | null, data: Latency | null): string {
  if (at === null || data === null) {
    return at === null ? "" : `Loading the mesh at ${wall(at)}…`;
  }
  return `The mesh as it was at ${wall(at)}${data.stepS > 10 ? `, in steps of ${duration(data.stepS * 1e9)}` : ""}${data.from.length === 0 ? ": nothing was measured then, or it is no longer kept" : ""}.`;
}

function Pair({ from, to, latency }: { from: number; to: number; latency: Latency }) {
  const there = useResource<Page<Path>>(`paths?from=${from}&to=${to}`, 5_000, ["finding"]);
  const back = useResource<Page<Path>>(`paths?from=${to}&to=${from}`, 5_000, ["finding"]);
  const name = (id: number) => latency.labels[latency.ids.indexOf(id)] ?? `NIC ${id}`;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.scrollIntoView?.({ block: "start", behavior: "smooth" }), [from, to]); // it is below the map
  return (
    <>
      <h2 ref={heading}>{name(from)} → {name(to)}</h2>
      {place.value.at !== null && <p class="dim">The two tables show the present paths. The chart below them shows the chosen range.</p>}
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
      { name: "Past", cell: (p) => p.switches?.map((s) => s ?? "no answer").join(" · ") ?? (p.signature === null ? "not known" : `path ${p.signature.slice(0, 8)}`) },
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
      {(series) => <Chart scale="ratio" title={`One-way delay, port ${path.port}`} seconds={secondsOf(series)} format={duration} lines={[{ name: "median", values: series.values }, ...(p99.data ? [{ name: "p99", values: p99.data.values }] : [])]} />}
    </Shown>
  );
}
