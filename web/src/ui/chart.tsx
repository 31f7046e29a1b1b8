// Series over time: uPlot in the dashboard's colours, one shared time axis.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";

export interface Line {
  name: string;
  values: (number | null)[]; // null: not known then; drawn as a gap, never as 0
}

const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"]; // Okabe and Ito: colour-blind safe

export function Chart({ title, seconds, lines, format, marks = [] }: {
  title: string;
  seconds: number[]; // since the epoch
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
    const axis = { stroke: ink, grid: { stroke: ink + "22", width: 1 }, ticks: { stroke: ink + "44", width: 1 } };
    const plot = new uPlot({
      width: Math.max(280, element.clientWidth),
      height: 220,
      cursor: { sync: { key: "foliot" } },
      series: [{}, ...lines.map((l, i) => ({ label: l.name, stroke: colours[i % colours.length]!, width: 1.5, spanGaps: false, value: (_: uPlot, v: number | null) => (v === null ? "–" : format(v)) }))],
      axes: [axis, { ...axis, size: 76, values: (_: uPlot, ticks: number[]) => ticks.map(format) }],
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
    }, [seconds, ...lines.map((l) => l.values)] as uPlot.AlignedData, element);
    const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(280, element.clientWidth), height: 220 }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [seconds, lines, marks, format]);
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={box} />
    </figure>
  );
}
