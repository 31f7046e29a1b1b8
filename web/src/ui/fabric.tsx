// The middle of the fabric: switches by tiers, the trunks between them with what probes met on them, and beside each leaf what its
// hosts send. What nobody measures is said, not drawn as idle.
import type { Fabric, Finding, Port, Trunk, TrunkState } from "../model.ts";
import { big } from "../model.ts";
import { digits, duration, rate, wall } from "../time.ts";
import { Empty, Mark, type Tone } from "./state.tsx";
import { Table } from "./table.tsx";

export const trunkTones: Record<TrunkState, Tone> = { good: "good", lossy: "warn", dead: "bad", gone: "warn", unknown: "none" };
const worry: Record<TrunkState, number> = { dead: 4, lossy: 3, gone: 2, unknown: 1, good: 0 };
const words: Record<TrunkState, string> = { good: "good", lossy: "loses packets", dead: "dead", gone: "no way passes it any more", unknown: "nobody reports of it" };

/** Both directions of one cable, the lower switch first. */
export interface Cable {
  low: string;
  high: string;
  up: Trunk | null;
  down: Trunk | null;
  state: TrunkState; // the worse of the two
  suspected: boolean;
}

/** Names that open findings suspect, as switches and trunks are named here. */
export function suspects(findings: readonly Finding[]): string[] {
  const names = findings.filter((f) => f.open).map((f) => (typeof f.detail?.suspect === "string" ? f.detail.suspect : (f.detail?.suspect?.name ?? "")));
  return [...new Set(names)].filter((n) => n !== "");
}

export function cables(fabric: Fabric, accused: readonly string[]): Cable[] {
  const tier = new Map(fabric.switches.map((s) => [s.name, s.tier]));
  const found = new Map<string, Cable>();
  for (const trunk of fabric.trunks) {
    const [x, y] = [tier.get(trunk.from) ?? 0, tier.get(trunk.to) ?? 0];
    const isUp = x < y || (x === y && trunk.from < trunk.to);
    const [low, high] = isUp ? [trunk.from, trunk.to] : [trunk.to, trunk.from];
    const was = found.get(`${low} ${high}`) ?? { low, high, up: null, down: null, state: "good" as TrunkState, suspected: false };
    found.set(`${low} ${high}`, {
      ...was,
      ...(isUp ? { up: trunk } : { down: trunk }),
      state: worry[trunk.state] > worry[was.state] ? trunk.state : was.state,
      suspected: accused.includes(`trunk ${low} - ${high}`) || accused.includes(`trunk ${high} - ${low}`),
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
const grave = (c: Cable) => worry[c.state] * 1e9 + (c.suspected ? 5e8 : 0) + ways(c).filter((t) => t.state === c.state).length * 1e8 + sum(c, (t) => t.paths_dead);

/** What a cable has, in words: both directions, or the one that has it. */
export function ill(c: Cable): string {
  const of = (t: Trunk) => words[t.state] + (t.gone_utc_ns === null ? "" : ` since ${wall(big(t.gone_utc_ns))}`);
  const odd = ways(c).filter((t) => t.state !== "good");
  const text = odd.length === 0 ? "good" : odd.length === 2 && of(odd[0]!) === of(odd[1]!) ? `${of(odd[0]!)}${odd[0]!.state === "dead" ? " in both directions" : ""}`
    : odd.map((t) => `${of(t)} ${t === c.up ? "up" : "down"}${ways(c).length === 2 ? "" : " (the only direction known)"}`).join(", ");
  return c.suspected ? `suspected; ${text}` : text;
}

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
  return t === null ? `${from} → ${to}: no way is known to pass it` : `${from} → ${to}: ${words[t.state]}${t.gone_utc_ns === null ? "" : ` since ${wall(big(t.gone_utc_ns))}`}; probes ${duration(t.owd_ns_p50)}, p99 ${duration(t.owd_ns_p99)}`;
}

/** The more the slowest probes wait beyond the median, the thicker: 1 us 2, 10 us 3.5, 100 us 5. */
export function thickness(t: Trunk | null): number {
  const wait = t === null || t.owd_ns_p99 === null || t.owd_ns_p50 === null ? 0 : t.owd_ns_p99 - t.owd_ns_p50;
  return Math.min(6, Math.max(1, 2 + 1.5 * Math.log10(Math.max(1, wait) / 1_000)));
}

export function Middle({ fabric, ports, accused }: { fabric: Fabric; ports: readonly Port[]; accused: readonly string[] }) {
  if (fabric.trunks.length === 0 && fabric.ways_known === 0) {
    return (
      <>
        <Empty>{fabric.ways === 0 ? "No host has told of a switch that its packets pass." : "Hosts know ways through the fabric, but not past which switches: those keep silent, or agents are older than this controller or may not hear them (foliot doctor)."} So trunks are not drawn.</Empty>
        {fabric.switches.length > 0 && <Picture fabric={fabric} cables={[]} ports={ports} accused={accused} />}
      </>
    );
  }
  const all = cables(fabric, accused);
  const bad = all.filter((c) => c.state !== "good" || c.suspected).sort((x, y) => grave(y) - grave(x));
  return (
    <>
      <p>
        {bad.length === 0 ? (all.length > 0 && <Mark tone="good">All {all.length} trunks that ways are known to pass are good</Mark>)
          : <Mark tone={bad.some((c) => c.state === "dead" || c.suspected) ? "bad" : "warn"}>{bad.length} of {all.length} trunks {bad.length === 1 ? "is" : "are"} not well</Mark>}{" "}
        {fabric.ways_known} of {fabric.ways} ways are known switch by switch.
      </p>
      {bad.length > 0 && <ul class="plain">{bad.slice(0, NAMED).map((c) => <li key={`${c.low} ${c.high}`}><strong>{c.low} – {c.high}</strong>: {ill(c)}</li>)}{bad.length > NAMED && <li class="dim">{bad.length - NAMED} more are in the table below.</li>}</ul>}
      {isWide(fabric) ? <Grid cables={all} accused={accused} /> : <Picture fabric={fabric} cables={all} ports={ports} accused={accused} />}
      <p class="dim">
        A trunk is as good as the best way over it, and thicker where the slowest probes wait longer. How many bits a trunk carries is not measured: no switch is asked. What hosts
        send into and receive out of a leaf is in its box.{fabric.trunks_more > 0 && ` ${fabric.trunks_more} more trunks are not drawn; those not well come first.`}
      </p>
      {fabric.trunks.length > 0 && (
        <Table caption="Trunks, the worst first" rows={all} id={(c) => `${c.low} ${c.high}`} first="State" columns={[
          { name: "Trunk", cell: (c) => `${c.low} – ${c.high}`, sort: (c) => `${c.low} – ${c.high}` },
          { name: "State", cell: (c) => <Mark tone={c.suspected ? "bad" : trunkTones[c.state]}>{ill(c)}</Mark>, sort: grave },
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

/** Many switches as a grid: a row for each lower one, a column for each higher one, a cell for each cable. The upper left half of a cell is
 *  the way up, the lower right half the way down. */
function Grid({ cables: all, accused }: { cables: Cable[]; accused: readonly string[] }) {
  const rows = [...new Set(all.map((c) => c.low))].sort(inOrder);
  const columns = [...new Set(all.map((c) => c.high))].sort(inOrder);
  const room = Math.min(1_060, globalThis.innerWidth || 1_200) - 150; // as much of it as a phone has is seen at once
  const [unit, left, top] = [Math.max(4, Math.min(18, Math.floor(room / Math.max(1, columns.length)))), room < 500 ? 70 : 120, 96];
  const [width, height] = [left + unit * columns.length + 52, top + unit * rows.length + 12];
  const [x, y] = [new Map(columns.map((c, i) => [c, left + unit * i])), new Map(rows.map((r, i) => [r, top + unit * i]))];
  const gap = unit < 9 ? 0.5 : 1;
  const square = (c: Cable) => `M${x.get(c.high)! + gap} ${y.get(c.low)! + gap}h${unit - 2 * gap}v${unit - 2 * gap}h${2 * gap - unit}z`;
  const odd = all.filter((c) => c.suspected || isBad(c.up) || isBad(c.down));
  const every = Math.ceil(11 / unit); // names that have room
  const label = `${rows.length} by ${columns.length} switches, ${all.length} trunks, ${all.filter((c) => c.state === "dead").length} of them dead`;
  const is = (name: string) => (accused.includes(name) || accused.includes(`router ${name}`) || odd.some((o) => o.low === name || o.high === name) ? "odd" : "");
  const near = (i: number, names: readonly string[]) => [...Array(2 * every - 1).keys()].some((k) => names[i - every + 1 + k] !== undefined && is(names[i - every + 1 + k]!) !== "");
  const told = (i: number, names: readonly string[]) => is(names[i]!) !== "" || (i % every === 0 && !near(i, names)); // no name lies on one that matters
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <svg class="fabric grid" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
        {columns.map((c, i) => told(i, columns) && <text key={c} class={`left ${is(c)}`} transform={`translate(${x.get(c)! + unit / 2 + 4} ${top - 6}) rotate(-60)`}>{c.slice(0, 14)}</text>)}
        {rows.map((r, i) => told(i, rows) && <text key={r} class={`right ${is(r)}`} x={left - 6} y={y.get(r)! + unit / 2 + 4}>{r.slice(0, 16)}</text>)}
        <path class="good" d={all.filter((c) => c.state === "good").map(square).join("")} />
        <path class="gone" d={all.filter((c) => c.state === "gone" || c.state === "unknown").map(square).join("")} />
        {odd.map((c) => {
          const [a, b] = [x.get(c.high)!, y.get(c.low)!];
          return (
            <g key={`${c.low} ${c.high}`}>
              <title>{`${c.suspected ? "Suspected. " : ""}${way(c.up, c.low, c.high)}. ${way(c.down, c.high, c.low)}`}</title>
              <circle class="ring" cx={a + unit / 2} cy={b + unit / 2} r={Math.max(unit, 9)} />
              <path class={isBad(c.up) || c.suspected ? `half ${c.up?.state ?? "dead"}` : "half"} d={`M${a} ${b}h${unit}L${a} ${b + unit}z`} />
              <path class={isBad(c.down) || c.suspected ? `half ${c.down?.state ?? "dead"}` : "half"} d={`M${a + unit} ${b}v${unit}h${-unit}z`} />
            </g>
          );
        })}
      </svg>
      <p class="legend"><span class="good">■ good</span><span class="bad">◤ the way up is dead, ◢ the way down</span><span class="warn">◤ ◢ loses packets</span><span>□ nobody reports of it, or no way passes it</span></p>
    </div>
  );
}

function Picture({ fabric, cables: all, ports, accused }: { fabric: Fabric; cables: Cable[]; ports: readonly Port[]; accused: readonly string[] }) {
  const tiers = [...new Set(fabric.switches.map((s) => s.tier))].sort((a, b) => b - a); // the highest on top
  const rows = tiers.map((tier) => fabric.switches.filter((s) => s.tier === tier).sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true })));
  const width = WIDTH * Math.max(...rows.map((r) => r.length)) + 16;
  const place = new Map(rows.flatMap((row, y) => row.map((s, i) => [s.name, { x: width / 2 + WIDTH * (i - (row.length - 1) / 2), y: 8 + TIER * y }] as const)));
  const height = TIER * (rows.length - 1) + HEIGHT + 16;
  const label = `${fabric.switches.length} switches, ${all.length} trunks, ${all.filter((c) => c.state === "dead").length} of them dead`;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <svg class="fabric" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
        <defs><marker id="tip" viewBox="0 0 8 8" refX={7} refY={4} markerWidth={5} markerHeight={5} orient="auto-start-reverse"><path class="tip" d="M0 0L8 4L0 8z" /></marker></defs>
        {all.map((c) => {
          const [a, b] = [place.get(c.low), place.get(c.high)];
          if (a === undefined || b === undefined) {
            return null;
          }
          const [y1, y2] = a.y === b.y ? [a.y + HEIGHT, b.y + HEIGHT] : [a.y, b.y + HEIGHT];
          const bad = c.suspected || c.state === "dead" || c.state === "lossy";
          return (
            <g key={`${c.low} ${c.high}`} class="trunk">
              <line class={bad ? "bad" : c.state === "good" ? "" : "gone"} stroke-width={Math.max(thickness(c.up), thickness(c.down))} x1={a.x} y1={y1} x2={b.x} y2={y2}
                {...(bad && (isBad(c.down) || c.suspected) ? { "marker-start": "url(#tip)" } : {})} {...(bad && (isBad(c.up) || c.suspected) ? { "marker-end": "url(#tip)" } : {})}>
                <title>{`${c.suspected ? "Suspected. " : ""}${way(c.up, c.low, c.high)}. ${way(c.down, c.high, c.low)}`}</title>
              </line>
              {bad && <text class="cross" x={(a.x + b.x) / 2} y={(y1 + y2) / 2 + 5}>{c.state === "dead" ? "✕" : "▲"}</text>}
            </g>
          );
        })}
        {rows.flat().map((s) => {
          const { x, y } = place.get(s.name)!;
          const own = ports.filter((p) => (p.first_switch ?? p.leaf) === s.name);
          const isAccused = accused.includes(s.name) || accused.includes(`router ${s.name}`);
          return (
            <g key={s.name}>
              <rect class={`box ${isAccused ? "bad" : s.ways === 0 ? "gone" : ""}`} x={x - BOX / 2} y={y} width={BOX} height={HEIGHT} rx={5} />
              <text x={x} y={y + 16}>{s.name.slice(0, 24)}</text>
              <text class="small" x={x} y={y + 31}>{isAccused ? "suspected" : s.ways === 0 ? (s.declared === null ? "no way any more" : "declared, not seen") : own.length > 0 ? loadText(load(own)) : `${s.ways} ways`}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
