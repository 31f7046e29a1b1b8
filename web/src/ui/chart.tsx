// Series over time: uPlot in the dashboard's colours, one shared time axis.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import { duration } from "../time.ts";

export interface Line {
  name: string;
  values: (number | null)[]; // null: not known then; drawn as a gap, never as 0
}

const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"]; // Okabe and Ito: colour-blind safe

/** As the rest of the page writes times: "14:03:07", "14:03", or the day. */
export function clock(seconds: number, step: number): string {
  const date = new Date(seconds * 1e3);
  const two = (n: number) => String(n).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return step < 60 ? `${time}:${two(date.getSeconds())}` : step < 86_400 ? time : `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "zero": from 0 on, so that a height is a share. "ratio": logarithmic, so that a p99 doesn't flatten the median. */
export type Scale = "zero" | "ratio";

/** The lowest and highest that the axis shows of what is known. */
export function reach(scale: Scale | undefined, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) {
    return scale === "ratio" ? [1, 10] : [0, 1];
  }
  if (scale === "ratio") {
    return [10 ** Math.floor(Math.log10(low)), 10 ** Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1)];
  }
  return [0, high > 0 ? high * 1.05 : 1];
}

export function Chart({ title, seconds, lines, format, marks = [], span = false, scale }: {
  title: string;
  scale?: Scale; // none: from the lowest to the highest
  seconds: number[]; // since the epoch; of a span, since its beginning
  span?: boolean;
  lines: Line[];
  format: (value: number) => string;
  marks?: { at: number; text: string }[];
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) {
      return undefined;
    }
    const ink = getComputedStyle(element).color;
    const faint = (share: number) => ink.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);
    const axis = { stroke: ink, grid: { stroke: faint(0.13), width: 1 }, ticks: { stroke: faint(0.27), width: 1 } };
    const plot = new uPlot({
      width: Math.max(280, element.clientWidth),
      height: 220,
      cursor: { sync: { key: "foliot" } },
      scales: { x: { time: !span }, ...(scale ? { y: { ...(scale === "ratio" ? { distr: 3 as const } : {}), range: (_: uPlot, low: number | null, high: number | null) => reach(scale, low, high) } } : {}) },
      series: [span ? { label: "after", value: (_: uPlot, v: number | null) => (v === null ? "–" : duration(v * 1e9)) } : {}, ...lines.map((l, i) => ({ label: l.name, stroke: colours[i % colours.length]!, width: 1.5, spanGaps: false, value: (_: uPlot, v: number | null) => (v === null ? "–" : format(v)) }))],
      axes: [span ? { ...axis, values: (_: uPlot, at: number[]) => at.map((v) => duration(v * 1e9)) } : { ...axis, space: 80, values: (_: uPlot, at: number[], _axis: number, _space: number, step: number) => at.map((v) => clock(v, step)) }, { ...axis, size: 76, values: (_: uPlot, ticks: (number | null)[]) => ticks.map((v) => (v === null ? "" : format(v))) }],
      hooks: {
        draw: [(u: uPlot) => {
          u.ctx.save();
          u.ctx.strokeStyle = "#d55e00";
          u.ctx.setLineDash([4, 4]);
          for (const mark of marks) {
            const x = u.valToPos(mark.at, "x", true);
            u.ctx.beginPath();
            u.ctx.moveTo(x, u.bbox.top);
            u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
            u.ctx.stroke();
          }
          u.ctx.restore();
        }],
      },
    }, [seconds, ...lines.map((l) => (scale === "ratio" ? l.values.map((v) => (v !== null && v > 0 ? v : null)) : l.values))] as uPlot.AlignedData, element);
    const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(280, element.clientWidth), height: 220 }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [seconds, lines, marks, format, span, scale]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={box} />
    </figure>
  );
}
