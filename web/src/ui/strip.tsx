// Delays of flows beside each other on one logarithmic axis: the one of 94 us among 4 us ones jumps out.
import { duration } from "../time.ts";
import { shareOf } from "../latency.ts";

export interface Bar {
  name: string;
  p50: number; // ns
  p99: number | null;
  odd: boolean;
}

const MOST = 24;
const [LEFT, RIGHT, ROW] = [300, 720, 18];

/** 1, 2 and 5 of each decade between the two, both ends included. */
export function ticks(least: number, most: number): number[] {
  const found = [];
  for (let decade = 10 ** Math.floor(Math.log10(Math.max(1, least))); decade <= most; decade *= 10) {
    found.push(...[1, 2, 5].map((n) => n * decade).filter((v) => v >= least && v <= most));
  }
  return found.length > 8 ? found.filter((v) => /^10*$/.test(String(v))) : found;
}

export function Strip({ title, bars }: { title: string; bars: Bar[] }) {
  const shown = [...bars].sort((a, b) => b.p50 - a.p50).slice(0, MOST);
  const least = Math.max(1, Math.min(...shown.map((b) => b.p50)) / 1.5);
  const most = Math.max(...shown.map((b) => Math.max(b.p50, b.p99 ?? 0))) * 1.2;
  const x = (ns: number) => LEFT + (RIGHT - LEFT) * shareOf(ns, least, most);
  const bottom = 8 + ROW * shown.length;
  return (
    <figure class="chart">
      <figcaption>{title}{bars.length > shown.length ? `: the ${shown.length} slowest of ${bars.length}` : ""}</figcaption>
      <div class="wide" tabIndex={0} role="region" aria-label={title}>
        <svg class="strip" viewBox={`0 0 800 ${bottom + 22}`} role="img" aria-label={shown.slice(0, 3).map((b) => `${b.name}: ${duration(b.p50)}`).join("; ")}>
          {ticks(least, most).map((t) => (
            <g key={t}>
              <line class="grid" x1={x(t)} x2={x(t)} y1={4} y2={bottom} />
              <text x={x(t)} y={bottom + 15} text-anchor="middle">{duration(t)}</text>
            </g>
          ))}
          {shown.map((b, i) => {
            const y = 8 + ROW * i + ROW / 2;
            return (
              <g key={`${b.name} ${i}`} class={b.odd ? "odd" : ""}>
                <text x={LEFT - 10} y={y + 4} text-anchor="end">{b.name}</text>
                {b.p99 !== null && <line class="tail" x1={x(b.p50)} x2={x(Math.max(b.p99, b.p50))} y1={y} y2={y} />}
                {b.odd ? <rect x={x(b.p50) - 5} y={y - 5} width={10} height={10} /> : <circle cx={x(b.p50)} cy={y} r={4} />}
                <text x={RIGHT + 8} y={y + 4}>{duration(b.p50)}</text>
              </g>
            );
          })}
        </svg>
      </div>
    </figure>
  );
}
