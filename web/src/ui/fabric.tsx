// The middle of the fabric: switches by tiers, the trunks between them with what probes met on them, and beside each leaf what its
// hosts send. What nobody measures is said, not drawn as idle.
import type { Fabric, Port, Trunk, TrunkState } from "../model.ts";
import { big } from "../model.ts";
import { type Accusation, howSure, isSure, ofCable, ofSwitch, type Suspect } from "../suspect.ts";
import { digits, duration, rate, wall } from "../time.ts";
import { Empty, Mark, type Tone } from "./state.tsx";
import { Table } from "./table.tsx";

export const trunkTones: Record<TrunkState, Tone> = { good: "good", lossy: "warn", dead: "bad", gone: "warn", unknown: "none" };
const worry: Record<TrunkState, number> = { dead: 4, lossy: 3, gone: 2, unknown: 1, good: 0 };
const words: Record<TrunkState, string> = { good: "good", lossy: "loses packets", dead: "dead", gone: "no path uses it any more", unknown: "no host reports it" };

/** Both directions of one cable, the lower switch first. */
export interface Cable {
  low: string;
  high: string;
  up: Trunk | null;
  down: Trunk | null;
  state: TrunkState; // the worse of the two
  accused: Accusation | null; // by an open incident
}

export function cables(fabric: Fabric, suspects: readonly Suspect[]): Cable[] {
  const tier = new Map(fabric.switches.map((s) => [s.name, s.tier]));
  const found = new Map<string, Cable>();
  for (const trunk of fabric.trunks) {
    const [x, y] = [tier.get(trunk.from) ?? 0, tier.get(trunk.to) ?? 0];
    const isUp = x < y || (x === y && trunk.from < trunk.to);
    const [low, high] = isUp ? [trunk.from, trunk.to] : [trunk.to, trunk.from];
    const was = found.get(`${low} ${high}`) ?? { low, high, up: null, down: null, state: "good" as TrunkState, accused: ofCable(suspects, low, high) };
    found.set(`${low} ${high}`, {
      ...was,
      ...(isUp ? { up: trunk } : { down: trunk }),
      state: worry[trunk.state] > worry[was.state] ? trunk.state : was.state,
    });
  }
  return [...found.values()];
}

const NAMED = 5;
const ways = (c: Cable) => [c.up, c.down].filter((t): t is Trunk => t !== null);
const sum = (c: Cable, of: (t: Trunk) => number) => ways(c).reduce((n, t) => n + of(t), 0);
const most = (c: Cable, of: (t: Trunk) => number | null) => Math.max(-1, ...ways(c).map((t) => of(t) ?? -1));
const both = (c: Cable, of: (t: Trunk) => string) => `${c.up === null ? "–" : of(c.up)}, ${c.down === null ? "–" : of(c.down)}`;
/** The worst first: by state, both directions before one, then by how many paths are dead. */
const grave = (c: Cable) => worry[c.state] * 1e9 + (c.accused === null ? 0 : isSure(c.accused.any) ? 5e8 : 1e8) + ways(c).filter((t) => t.state === c.state).length * 1e8 + sum(c, (t) => t.paths_dead);

/** What a cable has, in words: both directions, or the one that has it. */
export function ill(c: Cable): string {
  const of = (t: Trunk) => words[t.state] + (t.gone_utc_ns === null ? "" : ` since ${wall(big(t.gone_utc_ns))}`);
  const odd = ways(c).filter((t) => t.state !== "good");
  const text = odd.length === 0 ? "good" : odd.length === 2 && of(odd[0]!) === of(odd[1]!) ? `${of(odd[0]!)}${odd[0]!.state === "dead" ? " in both directions" : ""}`
    : odd.map((t) => `${of(t)} ${t === c.up ? "up" : "down"}${ways(c).length === 2 ? "" : " (the only direction known)"}`).join(", ");
  return c.accused === null ? text : `${accusation(c.accused)}; ${text}`;
}

/** "suspected up", "may be it: one of 3, down" */
function accusation({ up, down, any }: Accusation): string {
  const way = up !== null && down !== null ? "in both directions" : up !== null ? "up" : down !== null ? "down" : "";
  return `${howSure(any)}${way === "" ? "" : `${isSure(any) ? "" : ","} ${way}`}`;
}

const isIll = (c: Cable) => c.state !== "good" || (c.accused !== null && isSure(c.accused.any));

/** What a set of ports sends and receives; least: some don't say, so it is more. null: none says. */
export function load(ports: readonly Port[]): { tx: number | null; rx: number | null; least: boolean } {
  const sum = (of: (p: Port) => number | null) => {
    const known = ports.map(of).filter((v): v is number => v !== null);
    return known.length === 0 ? null : known.reduce((x, y) => x + y, 0);
  };
  return { tx: sum((p) => p.tx_bps), rx: sum((p) => p.rx_bps), least: ports.some((p) => p.tx_bps === null || p.rx_bps === null) };
}

export function loadText({ tx, rx, least }: ReturnType<typeof load>): string {
  return tx === null && rx === null ? "load not known" : `${least ? "≥ " : ""}in ${rate(tx)}, out ${rate(rx)}`;
}

const WIDTH = 176; // of a switch's place
const [BOX, HEIGHT, TIER] = [160, 38, 110];

function way(t: Trunk | null, from: string, to: string): string {
  return t === null ? `${from} → ${to}: no known path uses it` : `${from} → ${to}: ${words[t.state]}${t.gone_utc_ns === null ? "" : ` since ${wall(big(t.gone_utc_ns))}`}; probes ${duration(t.owd_ns_p50)}, p99 ${duration(t.owd_ns_p99)}`;
}

/** The more the slowest probes wait beyond the median, the thicker: 1 us 2, 10 us 3.5, 100 us 5. */
export function thickness(t: Trunk | null): number {
  const wait = t === null || t.owd_ns_p99 === null || t.owd_ns_p50 === null ? 0 : t.owd_ns_p99 - t.owd_ns_p50;
  return Math.min(6, Math.max(1, 2 + 1.5 * Math.log10(Math.max(1, wait) / 1_000)));
}

export function Middle({ fabric, ports, suspects }: { fabric: Fabric; ports: readonly Port[]; suspects: readonly Suspect[] }) {
  if (fabric.trunks.length === 0 && fabric.ways_known === 0) {
    return (
      <>
        <Empty>{fabric.ways === 0 ? "No host has reported a switch on its paths." : "Hosts report paths through the fabric, but no switches on them. Maybe the switches do not answer, or agents are older than this controller, or agents lack the permission to receive the answers (foliot doctor)."} So trunks are not drawn.</Empty>
        {fabric.switches.length > 0 && <Picture fabric={fabric} cables={[]} ports={ports} suspects={suspects} />}
      </>
    );
  }
  const all = cables(fabric, suspects);
  const told = all.filter((c) => isIll(c) || c.accused !== null).sort((x, y) => grave(y) - grave(x));
  const bad = told.filter(isIll);
  return (
    <>
      <p>
        {bad.length === 0 ? (all.length > 0 && <Mark tone="good">All {all.length} trunks that ways are known to pass {told.length > 0 ? "measure good" : "are good"}</Mark>)
          : <Mark tone={bad.some((c) => c.state === "dead" || c.accused !== null) ? "bad" : "warn"}>{bad.length} of {all.length} trunks {bad.length === 1 ? "is" : "are"} not well</Mark>}{" "}
        {told.length > bad.length && <Mark tone="warn">{told.length - bad.length} may be ill: an incident names several suspects</Mark>}{" "}
        All switches are known on {fabric.ways_known} of {fabric.ways} paths.
      </p>
      {told.length > 0 && <ul class="plain">{told.slice(0, NAMED).map((c) => <li key={`${c.low} ${c.high}`}><strong>{c.low} – {c.high}</strong>: {ill(c)}</li>)}{told.length > NAMED && <li class="dim">{told.length - NAMED} more are in the table below.</li>}</ul>}
      {isWide(fabric) ? <Grid cables={all} suspects={suspects} /> : <Picture fabric={fabric} cables={all} ports={ports} suspects={suspects} />}
      <p class="dim">
        A trunk is as good as the best path over it. It is thicker if the slowest probes wait longer. The rate of a trunk is not measured, because no switch is asked. The box of a leaf has the rates that its hosts
        send and receive.{fabric.trunks_more > 0 && ` ${fabric.trunks_more} more trunks are not drawn: bad ones come first.`}
      </p>
      {fabric.trunks.length > 0 && (
        <Table caption="Trunks, the worst first" rows={all} id={(c) => `${c.low} ${c.high}`} first="State" columns={[
          { name: "Trunk", cell: (c) => `${c.low} – ${c.high}`, sort: (c) => `${c.low} – ${c.high}` },
          { name: "State", cell: (c) => <Mark tone={c.accused !== null && isSure(c.accused.any) ? "bad" : c.accused !== null && c.state === "good" ? "warn" : trunkTones[c.state]}>{ill(c)}</Mark>, sort: grave },
          { name: "Ways up, down", cell: (c) => both(c, (t) => String(t.ways)), sort: (c) => sum(c, (t) => t.ways), number: true },
          { name: "alive", cell: (c) => both(c, (t) => String(t.paths_alive)), sort: (c) => sum(c, (t) => t.paths_alive), number: true },
          { name: "lossy", cell: (c) => both(c, (t) => String(t.paths_lossy)), sort: (c) => sum(c, (t) => t.paths_lossy), number: true },
          { name: "dead", cell: (c) => both(c, (t) => String(t.paths_dead)), sort: (c) => sum(c, (t) => t.paths_dead), number: true },
          { name: "Median", cell: (c) => both(c, (t) => duration(t.owd_ns_p50)), sort: (c) => most(c, (t) => t.owd_ns_p50), number: true },
          { name: "p99", cell: (c) => both(c, (t) => duration(t.owd_ns_p99)), sort: (c) => most(c, (t) => t.owd_ns_p99), number: true },
          { name: "Loss", cell: (c) => both(c, (t) => (t.loss_ppm === null ? "–" : `${digits(t.loss_ppm / 10_000)} %`)), sort: (c) => most(c, (t) => t.loss_ppm), number: true },
        ]} />
      )}
    </>
  );
}

const WIDE = 12; // switches in a row: with more, boxes and lines can't be read

export function isWide(fabric: Fabric): boolean {
  const rows = new Map<number, number>();
  fabric.switches.forEach((s) => rows.set(s.tier, (rows.get(s.tier) ?? 0) + 1));
  return Math.max(0, ...rows.values()) > WIDE;
}

const inOrder = (a: string, b: string) => a.localeCompare(b, undefined, { numeric: true });
const isBad = (t: Trunk | null) => t !== null && (t.state === "dead" || t.state === "lossy");
/** Of one direction: what is measured of it, else that it is accused. */
const half = (t: Trunk | null, s: Suspect | null) => (isBad(t) ? t!.state : s === null ? "" : isSure(s) ? "accused" : "maybe");
const title = (c: Cable) => {
  const said = c.accused === null ? "" : `${accusation(c.accused)}. `;
  return `${said.slice(0, 1).toUpperCase()}${said.slice(1)}${way(c.up, c.low, c.high)}. ${way(c.down, c.high, c.low)}`;
};

/** Many switches as a grid: a row for each lower one, a column for each higher one, a cell for each cable. The upper left half of a cell is
 *  the way up, the lower right half the way down. */
function Grid({ cables: all, suspects }: { cables: Cable[]; suspects: readonly Suspect[] }) {
  const rows = [...new Set(all.map((c) => c.low))].sort(inOrder);
  const columns = [...new Set(all.map((c) => c.high))].sort(inOrder);
  const room = Math.min(1_060, globalThis.innerWidth || 1_200) - 150; // as much of it as a phone has is seen at once
  const [unit, left, top] = [Math.max(4, Math.min(18, Math.floor(room / Math.max(1, columns.length)))), room < 500 ? 70 : 120, 96];
  const [width, height] = [left + unit * columns.length + 52, top + unit * rows.length + 12];
  const [x, y] = [new Map(columns.map((c, i) => [c, left + unit * i])), new Map(rows.map((r, i) => [r, top + unit * i]))];
  const gap = unit < 9 ? 0.5 : 1;
  const square = (c: Cable) => `M${x.get(c.high)! + gap} ${y.get(c.low)! + gap}h${unit - 2 * gap}v${unit - 2 * gap}h${2 * gap - unit}z`;
  const odd = all.filter((c) => c.accused !== null || isBad(c.up) || isBad(c.down));
  const every = Math.ceil(11 / unit); // names that have room
  const label = `${rows.length} by ${columns.length} switches, ${all.length} trunks, ${all.filter((c) => c.state === "dead").length} of them dead`;
  const is = (name: string) => (ofSwitch(suspects, name) !== null || odd.some((o) => o.low === name || o.high === name) ? "odd" : "");
  const near = (i: number, names: readonly string[]) => [...Array(2 * every - 1).keys()].some((k) => names[i - every + 1 + k] !== undefined && is(names[i - every + 1 + k]!) !== "");
  const told = (i: number, names: readonly string[]) => is(names[i]!) !== "" || (i % every === 0 && !near(i, names)); // no name lies on one that matters
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <svg class="fabric grid" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
        <defs><pattern id="hatch" width={3} height={3} patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatched" d="M0 0h1.5v3H0z" /></pattern></defs>
        {columns.map((c, i) => told(i, columns) && <text key={c} class={`left ${is(c)}`} transform={`translate(${x.get(c)! + unit / 2 + 4} ${top - 6}) rotate(-60)`}>{c.slice(0, 14)}</text>)}
        {rows.map((r, i) => told(i, rows) && <text key={r} class={`right ${is(r)}`} x={left - 6} y={y.get(r)! + unit / 2 + 4}>{r.slice(0, 16)}</text>)}
        <path class="good" d={all.filter((c) => c.state === "good").map(square).join("")} />
        <path class="gone" d={all.filter((c) => c.state === "gone" || c.state === "unknown").map(square).join("")} />
        {odd.map((c) => {
          const [a, b] = [x.get(c.high)!, y.get(c.low)!];
          return (
            <g key={`${c.low} ${c.high}`}>
              <title>{title(c)}</title>
              <circle class={`ring ${isIll(c) ? "" : "maybe"}`} cx={a + unit / 2} cy={b + unit / 2} r={Math.max(unit, 9)} />
              <path class={`half ${half(c.up, c.accused?.up ?? null)}`} d={`M${a} ${b}h${unit}L${a} ${b + unit}z`} />
              <path class={`half ${half(c.down, c.accused?.down ?? null)}`} d={`M${a + unit} ${b}v${unit}h${-unit}z`} />
            </g>
          );
        })}
      </svg>
      <p class="legend"><span class="good">■ good</span><span class="bad">◤ the way up is dead, ◢ the way down</span><span class="warn">◤ ◢ loses packets</span><span class="bad">◯ an open incident accuses it</span><span>◌ an incident names it as one of several suspects</span><span>□ no host reports it, or no path uses it</span></p>
    </div>
  );
}

function Picture({ fabric, cables: all, ports, suspects }: { fabric: Fabric; cables: Cable[]; ports: readonly Port[]; suspects: readonly Suspect[] }) {
  const tiers = [...new Set(fabric.switches.map((s) => s.tier))].sort((a, b) => b - a); // the highest on top
  const rows = tiers.map((tier) => fabric.switches.filter((s) => s.tier === tier).sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true })));
  const width = WIDTH * Math.max(...rows.map((r) => r.length)) + 16;
  const place = new Map(rows.flatMap((row, y) => row.map((s, i) => [s.name, { x: width / 2 + WIDTH * (i - (row.length - 1) / 2), y: 8 + TIER * y }] as const)));
  const height = TIER * (rows.length - 1) + HEIGHT + 16;
  const label = `${fabric.switches.length} switches, ${all.length} trunks, ${all.filter((c) => c.state === "dead").length} of them dead`;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <svg class="fabric" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
        <defs><marker id="tip" viewBox="0 0 8 8" refX={7} refY={4} markerWidth={5} markerHeight={5} orient="auto-start-reverse"><path class="tip" d="M0 0L8 4L0 8z" /></marker>
          <marker id="maybe" viewBox="0 0 8 8" refX={7} refY={4} markerWidth={5} markerHeight={5} orient="auto-start-reverse"><path class="tip maybe" d="M0 0L8 4L0 8z" /></marker></defs>
        {all.map((c) => {
          const [a, b] = [place.get(c.low), place.get(c.high)];
          if (a === undefined || b === undefined) {
            return null;
          }
          const [y1, y2] = a.y === b.y ? [a.y + HEIGHT, b.y + HEIGHT] : [a.y, b.y + HEIGHT];
          const bad = (isIll(c) && c.accused !== null) || c.state === "dead" || c.state === "lossy";
          const [up, down] = [half(c.up, c.accused?.up ?? null), half(c.down, c.accused?.down ?? null)];
          const tip = (of: string) => `url(#${of === "maybe" ? "maybe" : "tip"})`;
          return (
            <g key={`${c.low} ${c.high}`} class="trunk">
              <line class={bad ? "bad" : c.accused !== null ? "maybe" : c.state === "good" ? "" : "gone"} stroke-width={Math.max(thickness(c.up), thickness(c.down))} x1={a.x} y1={y1} x2={b.x} y2={y2}
                {...(down === "" ? {} : { "marker-start": tip(down) })} {...(up === "" ? {} : { "marker-end": tip(up) })}>
                <title>{title(c)}</title>
              </line>
              {(bad || c.accused !== null) && <text class={bad ? "cross" : "cross maybe"} x={(a.x + b.x) / 2} y={(y1 + y2) / 2 + 5}>{c.state === "dead" ? "✕" : bad ? "▲" : "?"}</text>}
            </g>
          );
        })}
        {rows.flat().map((s) => {
          const { x, y } = place.get(s.name)!;
          const own = ports.filter((p) => (p.first_switch ?? p.leaf) === s.name);
          const accused = ofSwitch(suspects, s.name);
          return (
            <g key={s.name}>
              <rect class={`box ${accused !== null ? (isSure(accused) ? "bad" : "maybe") : s.ways === 0 ? "gone" : ""}`} x={x - BOX / 2} y={y} width={BOX} height={HEIGHT} rx={5} />
              <text x={x} y={y + 16}>{s.name.slice(0, 24)}</text>
              <text class="small" x={x} y={y + 31}>{accused !== null ? howSure(accused) : s.ways === 0 ? (s.declared === null ? "no way any more" : "declared, not seen") : own.length > 0 ? loadText(load(own)) : `${s.ways} ways`}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
