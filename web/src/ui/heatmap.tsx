// The matrix as a heat map on a canvas: wheel or + − zooms, drag or arrows pan, a pointer or the cursor reads a cell. What
// moves with the pointer is no state of the page: a frame copies tiles, nothing is laid out or rendered anew.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Cell, cellOf, type Latency, shade } from "../latency.ts";
import { duration } from "../time.ts";
import { axisOf, drawAxes, type Marks } from "./axes.ts";
import { cellAt, depthOf, paintTile, pan, placeTile, TILE, type Window, whole, zoom } from "./heat.ts";

interface Spot {
  column: number;
  row: number;
}

const PIXELS = 720;
const TILES_MAX = 64;
const spare: HTMLCanvasElement[] = [];

/** Tiles of one matrix in its shades, painted when they are first seen. */
class Tiles {
  private readonly kept = new Map<string, HTMLCanvasElement>();

  constructor(private readonly latency: Latency, private readonly shades: Uint8Array) {}

  get(depth: number, column: number, row: number): HTMLCanvasElement {
    const key = `${depth}/${column}/${row}`;
    const tile = this.kept.get(key) ?? this.paint(depth, column, row);
    this.kept.delete(key); // the last used is the last to go
    this.kept.set(key, tile);
    if (this.kept.size > TILES_MAX) {
      const [oldest, canvas] = this.kept.entries().next().value!;
      this.kept.delete(oldest);
      spare.push(canvas);
    }
    return tile;
  }

  private paint(depth: number, column: number, row: number): HTMLCanvasElement {
    const canvas = spare.pop() ?? Object.assign(document.createElement("canvas"), { width: TILE, height: TILE });
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(TILE, TILE);
    paintTile(this.latency, this.shades, depth, column, row, new Uint32Array(image.data.buffer));
    context.putImageData(image, 0, 0);
    return canvas;
  }

  end(): void {
    spare.push(...this.kept.values());
    spare.length = Math.min(spare.length, TILES_MAX);
    this.kept.clear();
  }
}

function draw(context: CanvasRenderingContext2D, tiles: Tiles, size: number, w: Window, cell: Spot | null): void {
  const depth = depthOf(w.span, PIXELS);
  const side = TILE * 2 ** depth;
  context.clearRect(0, 0, PIXELS, PIXELS);
  context.imageSmoothingEnabled = false;
  for (let row = Math.floor(w.y / side) * side; row < Math.min(size, w.y + w.span); row += side) {
    const y = placeTile(row, depth, w.y, w.span, PIXELS);
    for (let column = Math.floor(w.x / side) * side; column < Math.min(size, w.x + w.span); column += side) {
      const x = placeTile(column, depth, w.x, w.span, PIXELS);
      if (x && y) {
        context.drawImage(tiles.get(depth, column, row), x.source, y.source, x.sourceSize, y.sourceSize, x.to, y.to, x.toSize, y.toSize);
      }
    }
  }
  if (cell) {
    const unit = PIXELS / w.span;
    for (const [colour, width] of [["#fff", 4], ["#000", 2]] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect((cell.column - w.x) * unit, (cell.row - w.y) * unit, Math.max(unit, 3), Math.max(unit, 3));
    }
  }
}

export function HeatMap({ latency, codes, what, marks, onPick }: { latency: Latency; codes: Int16Array; what: string; marks?: Marks; onPick: (from: number, to: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const size = latency.ids.length;
  const view = useRef<Window>(whole(size));
  const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
  const frame = useRef(0);
  const cell = useSignal<Spot | null>(null);
  const shades = useMemo(() => shade(latency, codes), [latency, codes]);
  const tiles = useMemo(() => new Tiles(latency, shades.of), [latency, shades]);
  const axis = useMemo(() => axisOf(latency, marks), [latency, marks]);
  const shown = useRef({ tiles, size, axis, latency, codes, shades });
  shown.current = { tiles, size, axis, latency, codes, shades };

  const paint = () => {
    const context = canvas.current?.getContext("2d");
    if (context) {
      const s = shown.current;
      draw(context, s.tiles, s.size, view.current, cell.value);
      drawAxes(over.current!, canvas.current!.clientWidth, view.current, s.axis, s.latency, s.codes, s.shades);
    }
  };
  const redraw = () => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      paint();
    });
  };
  const look = (next: Window) => {
    view.current = next;
    redraw();
  };
  const point = (next: Spot | null) => {
    if (next?.column !== cell.value?.column || next?.row !== cell.value?.row) {
      cell.value = next;
      redraw();
    }
  };

  useEffect(() => {
    const watch = new ResizeObserver(redraw);
    watch.observe(canvas.current!);
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);
  useLayoutEffect(() => {
    view.current = whole(size);
    cell.value = null;
  }, [size]);
  useLayoutEffect(() => { // with the frame that shows the canvas
    paint();
    return () => tiles.end();
  }, [tiles]);
  useEffect(redraw, [axis]);

  const at = (event: PointerEvent | WheelEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const p = at(event);
    look(zoom(view.current, size, event.deltaY > 0 ? 1.25 : 0.8, p.x, p.y));
  };
  const onDown = (event: PointerEvent) => {
    drag.current = { ...at(event), moved: false };
    point(cellAt(view.current, size, drag.current.x, drag.current.y));
    canvas.current!.setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent) => {
    const p = at(event);
    const d = drag.current;
    if (d && event.buttons === 1) {
      d.moved ||= Math.abs(p.x - d.x) + Math.abs(p.y - d.y) > 0.01;
      if (d.moved) {
        look(pan(view.current, size, d.x - p.x, d.y - p.y));
        d.x = p.x;
        d.y = p.y;
      }
    } else {
      point(cellAt(view.current, size, p.x, p.y));
    }
  };
  const onUp = () => {
    const picked = drag.current && !drag.current.moved ? cell.value : null;
    drag.current = null;
    if (picked) {
      onPick(picked.column, picked.row);
    }
  };
  const onKey = (event: KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (event.key === "+" || event.key === "-") {
      look(zoom(view.current, size, event.key === "+" ? 0.8 : 1.25, 0.5, 0.5));
    } else if (event.key === "Enter" && cell.value) {
      onPick(cell.value.column, cell.value.row);
    } else if (step) {
      const next = { column: bound((cell.value?.column ?? 0) + step[0], size), row: bound((cell.value?.row ?? 0) + step[1], size) };
      point(next);
      look(follow(view.current, size, next));
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div class="heat">
      <div class="map">
      <canvas ref={canvas} width={PIXELS} height={PIXELS} tabIndex={0} role="application" aria-label={`One-way delays between ${size} ${what}. Arrows move, plus and minus zoom, Enter opens a cell.`}
        onWheel={onWheel} onPointerMove={onMove} onPointerLeave={() => drag.current ?? point(null)} onPointerDown={onDown} onPointerUp={onUp}
        onPointerCancel={() => { drag.current = null; }} onKeyDown={onKey} />
      <canvas ref={over} class="over" aria-hidden="true" />
      </div>
      <div class="row">
        <button aria-label="Zoom in" onClick={() => look(zoom(view.current, size, 0.5, 0.5, 0.5))}>+</button>
        <button aria-label="Zoom out" onClick={() => look(zoom(view.current, size, 2, 0.5, 0.5))}>−</button>
        <button onClick={() => look(whole(size))}>All</button>
        <p class="legend"><span>{duration(shades.least)}</span><span class="ramp" aria-hidden="true" /><span>{duration(shades.most)}</span><span class="dead">■ all paths dead</span><span class="part">▲ some of them dead (zoomed in: the red part is their share)</span><span class="silent">■ not heard</span><span><span class="hatch" aria-hidden="true" /> not measured</span>{marks !== undefined && marks.size > 0 && <span>■ ▲ before a name: an open incident suspects it, or names it as one of several</span>}</p>
      </div>
      <Reading latency={latency} codes={codes} cell={cell} measured={shades.measured} />
    </div>
  );
}

/** What is under the pointer: rendered alone, the map isn't. */
function Reading({ latency, codes, cell, measured }: { latency: Latency; codes: Int16Array; cell: Signal<Spot | null>; measured: number }) {
  const c = cell.value;
  const known = c !== null && c.column < latency.ids.length && c.row < latency.ids.length;
  return <p class="reading" aria-live="polite">{known ? `${latency.labels[c.column]} → ${latency.labels[c.row]}: ${words(cellOf(latency, codes, c.column, c.row), latency.atNs)}` : `Columns send, rows receive. ${measured} pairs ${latency.atNs === null ? "are" : "were"} measured.`}</p>;
}

export function words(cell: Cell | null, at: bigint | null): string {
  if (cell === null) {
    return at === null ? "not measured" : "not measured then";
  }
  const dead = cell.dead === 0 ? "" : cell.dead >= cell.paths ? (cell.paths > 1 ? `all ${cell.paths} paths are dead` : "its path is dead") : `${cell.dead} of ${cell.paths} paths ${cell.dead > 1 ? "are" : "is"} dead`;
  return cell.silent ? "the measuring host is silent" : [cell.ns === null ? "" : duration(cell.ns), dead].filter((part) => part !== "").join("; ") || "no delay known";
}

function bound(i: number, size: number): number {
  return Math.min(Math.max(i, 0), size - 1);
}

function follow(w: Window, size: number, cell: Spot): Window {
  const by = (i: number, from: number) => (i < from ? (i - from) / w.span : i + 1 > from + w.span ? (i + 1 - from - w.span) / w.span : 0);
  return pan(w, size, by(cell.column, w.x), by(cell.row, w.y));
}
