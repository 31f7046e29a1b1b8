// A matrix as a heat map on a canvas: wheel or + − zooms, drag or arrows pan, a pointer or the cursor reads a cell.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { cellAt, cellsOf, paint, paintCells, pan, type Window, whole, zoom } from "./heat.ts";
import { duration } from "../time.ts";

export interface Matrix {
  labels: string[]; // of columns (senders) and rows (receivers) alike
  values: Float64Array; // size², ns; NaN: not measured; Infinity: dead
  measured: Uint32Array; // places in `values` that aren't NaN, each once
}

const PIXELS = 720;

export function HeatMap({ matrix, onPick }: { matrix: Matrix; onPick: (from: number, to: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = matrix.labels.length;
  const [view, setView] = useState<Window>(whole(size));
  const [cell, setCell] = useState<{ column: number; row: number } | null>(null);
  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const { least, most } = useMemo(() => limits(matrix), [matrix]);
  const cells = useMemo(() => cellsOf(matrix.values, matrix.measured, least, most), [matrix]);
  const image = useRef<{ data: ImageData; pixels: Uint32Array; blank: Uint32Array; dark: boolean } | null>(null);

  useEffect(() => setView(whole(size)), [size]);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) {
      return;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    if (image.current?.dark !== dark) {
      const data = context.createImageData(PIXELS, PIXELS);
      const [paper, line] = dark ? [0xff2b2320, 0xff40362f] : [0xfff4f1ee, 0xffd8d2cc];
      const blank = new Uint32Array(PIXELS * PIXELS).map((_, i) => (((i % PIXELS) + Math.floor(i / PIXELS)) % 6 === 0 ? line : paper));
      image.current = { data, pixels: new Uint32Array(data.data.buffer), blank, dark };
    }
    const { data, pixels, blank } = image.current!;
    if (cells) {
      pixels.set(blank);
      paintCells(cells, size, view, PIXELS, pixels);
    } else {
      paint(matrix.values, size, view, PIXELS, least, most, pixels, (x, y) => blank[y * PIXELS + x]!);
    }
    context.putImageData(data, 0, 0);
    if (cell) {
      const unit = PIXELS / view.span;
      context.strokeStyle = dark ? "#fff" : "#000";
      context.lineWidth = 2;
      context.strokeRect((cell.column - view.x) * unit, (cell.row - view.y) * unit, Math.max(unit, 3), Math.max(unit, 3));
    }
  }, [matrix, view, cell, cells, least, most, size]);

  const at = (event: PointerEvent | WheelEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const p = at(event);
    setView((w) => zoom(w, size, event.deltaY > 0 ? 1.25 : 0.8, p.x, p.y));
  };
  const onMove = (event: PointerEvent) => {
    const p = at(event);
    if (drag.current && event.buttons === 1) {
      const d = drag.current;
      d.moved = d.moved || Math.abs(p.x - d.x) + Math.abs(p.y - d.y) > 0.01;
      setView((w) => pan(w, size, d.x - p.x, d.y - p.y));
      d.x = p.x;
      d.y = p.y;
    } else {
      setCell(cellAt(view, size, p.x, p.y));
    }
  };
  const onKey = (event: KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (event.key === "+" || event.key === "-") {
      setView((w) => zoom(w, size, event.key === "+" ? 0.8 : 1.25, 0.5, 0.5));
    } else if (event.key === "Enter" && cell) {
      onPick(cell.column, cell.row);
    } else if (step) {
      const next = { column: bound((cell?.column ?? 0) + step[0], size), row: bound((cell?.row ?? 0) + step[1], size) };
      setCell(next);
      setView((w) => follow(w, size, next));
    } else {
      return;
    }
    event.preventDefault();
  };
  const value = cell ? matrix.values[cell.row * size + cell.column]! : Number.NaN;
  return (
    <div class="heat">
      <canvas ref={canvas} width={PIXELS} height={PIXELS} tabIndex={0} role="application" aria-label={`One-way delays between ${size} NICs. Arrows move, plus and minus zoom, Enter opens a cell.`}
        onWheel={onWheel} onPointerMove={onMove} onPointerLeave={() => setCell(null)} onKeyDown={onKey}
        onPointerDown={(event) => { drag.current = { ...at(event), moved: false }; }}
        onPointerUp={() => { if (drag.current && !drag.current.moved && cell) { onPick(cell.column, cell.row); } drag.current = null; }} />
      <p class="reading" aria-live="polite">
        {cell ? `${matrix.labels[cell.column]} → ${matrix.labels[cell.row]}: ${Number.isNaN(value) ? "not measured" : value === Infinity ? "dead" : duration(value)}` : "Columns send, rows receive. Hatched: nobody measured it."}
      </p>
      <p class="legend"><span>{duration(least)}</span><span class="ramp" aria-hidden="true" /><span>{duration(most)}</span><span class="dead">■ dead</span></p>
    </div>
  );
}

function bound(i: number, size: number): number {
  return Math.min(Math.max(i, 0), size - 1);
}

function follow(w: Window, size: number, cell: { column: number; row: number }): Window {
  const by = (i: number, from: number) => (i < from ? (i - from) / w.span : i + 1 > from + w.span ? (i + 1 - from - w.span) / w.span : 0);
  return pan(w, size, by(cell.column, w.x), by(cell.row, w.y));
}

function limits({ values, measured }: Matrix): { least: number; most: number } {
  let least = Infinity;
  let most = 0;
  for (const place of measured) {
    const v = values[place]!;
    if (v !== Infinity) {
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
  }
  return { least: least === Infinity ? 0 : least, most };
}
