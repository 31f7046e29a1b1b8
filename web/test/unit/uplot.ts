// In place of uPlot: what charts were told to draw, the last of each title.
export interface Drawn {
  title: string;
  labels: string[];
  seconds: (number | null)[];
  values: (number | null)[][];
}
const charts = new Map<object, Drawn>();

export const drawn = () => [...charts.values()];

export default class UPlot {
  constructor(options: { series: { label?: string }[] }, data: (number | null)[][], box: Element) {
    const title = box.parentNode?.firstChild?.textContent ?? "";
    charts.set(this, { title, labels: options.series.slice(1).map((s) => s.label ?? ""), seconds: data[0] ?? [], values: data.slice(1) });
  }

  setSize(): void {}

  destroy(): void {
    charts.delete(this);
  }
}
