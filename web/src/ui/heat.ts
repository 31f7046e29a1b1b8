// The arithmetic of a heat map: which cell is under the pointer, what a zoom keeps in place, which colour a cell has, and
// the map in tiles: drawn once for each depth, so that panning only copies pixels.
import { type Latency, type Place, seek, SHADE_DEAD, SHADE_LEAST, SHADE_MOST, SHADE_PART, SHADE_SILENT } from "../latency.ts";

export interface Window {
  x: number; // first column shown, may be a fraction
  y: number;
  span: number; // columns shown; as many rows
}

export function whole(size: number): Window {
  return { x: 0, y: 0, span: Math.max(1, size) };
}

/** Zooms by `factor` (< 1: in) and keeps the cell at (fx, fy), shares of the picture, where it is. */
export function zoom(w: Window, size: number, factor: number, fx: number, fy: number): Window {
  const span = Math.min(Math.max(w.span * factor, Math.min(4, size)), Math.max(1, size));
  return clamp({ x: w.x + fx * (w.span - span), y: w.y + fy * (w.span - span), span }, size);
}

export function pan(w: Window, size: number, dx: number, dy: number): Window {
  return clamp({ x: w.x + dx * w.span, y: w.y + dy * w.span, span: w.span }, size);
}

function clamp(w: Window, size: number): Window {
  const most = Math.max(0, size - w.span);
  return { x: Math.min(Math.max(w.x, 0), most), y: Math.min(Math.max(w.y, 0), most), span: w.span };
}

/** null: beside the map. */
export function cellAt(w: Window, size: number, fx: number, fy: number): { column: number; row: number } | null {
  const column = Math.floor(w.x + fx * w.span);
  const row = Math.floor(w.y + fy * w.span);
  return column >= 0 && row >= 0 && column < size && row < size ? { column, row } : null;
}

// cividis, sampled: the same order for every kind of colour vision, and in grey.
const stops: [number, number, number][] = [[0, 32, 77], [33, 62, 107], [81, 92, 108], [123, 121, 119], [166, 152, 116], [212, 187, 97], [255, 234, 70]];

/** 0…1 → packed ABGR (as ImageData has it on little endian). */
export function colour(share: number): number {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const part = place - i;
  const mix = (k: 0 | 1 | 2) => Math.round(stops[i]![k] + part * (stops[i + 1]![k] - stops[i]![k]));
  return ((255 << 24) | (mix(2) << 16) | (mix(1) << 8) | mix(0)) >>> 0;
}

/** By shade; what nobody measured is transparent: the canvas lies on hatching. */
export const palette = Uint32Array.from({ length: 256 }, (_, s) =>
  s === 0 ? 0 : s === SHADE_SILENT ? 0xff9a928a : s === SHADE_DEAD ? 0xff2a1fb4 : s === SHADE_PART ? 0xff9e7cf2 : colour((s - SHADE_LEAST) / (SHADE_MOST - SHADE_LEAST)));

export function css(packed: number): string {
  return `rgb(${packed & 255}, ${(packed >> 8) & 255}, ${(packed >> 16) & 255})`;
}

// ---- axes ----

export interface Run {
  begin: number; // first row or column
  end: number; // behind the last
  text: string;
}

/** Neighbours of one host, or of one leaf: what borders stand around, and headings stand over. */
export function runs(places: readonly Place[], of: (p: Place) => string): Run[] {
  const found: Run[] = [];
  places.forEach((p, i) => {
    const last = found.at(-1);
    if (last !== undefined && last.text === of(p)) {
      last.end = i + 1;
    } else {
      found.push({ begin: i, end: i + 1, text: of(p) });
    }
  });
  return found;
}

/** The runs that a window shows: first and last + 1. A frame has no time for thousands that it doesn't show. */
function within(all: readonly Run[], from: number, to: number): [number, number] {
  const behind = (is: (r: Run) => boolean) => {
    let [low, high] = [0, all.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      [low, high] = is(all[middle]!) ? [low, middle] : [middle + 1, high];
    }
    return low;
  };
  return [behind((r) => r.end > from), behind((r) => r.begin >= to)];
}

export interface Heading { at: number; to: number; text: string }

/** Of headings, those that have room: each run's place on an axis of `length` pixels under a window, at least `room` pixels long. */
export function headings(all: readonly Run[], from: number, span: number, length: number, room: number): Heading[] {
  const place = (i: number) => Math.min(Math.max(((i - from) * length) / span, 0), length);
  const found: Heading[] = [];
  const [first, last] = within(all, from, from + span);
  for (let i = first; i < last; i++) {
    const [at, to] = [place(all[i]!.begin), place(all[i]!.end)];
    if (to - at >= room && all[i]!.text !== "") {
      found.push({ at, to, text: all[i]!.text });
    }
  }
  return found;
}

/** Of names none of which has room, as many as have: each n-th. */
export function thinned(all: readonly Run[], from: number, span: number, length: number, room: number): Heading[] {
  const unit = (length * Math.max(1, all.at(-1)?.end ?? 1)) / span / Math.max(1, all.length);
  const every = Math.max(1, Math.ceil(room / unit));
  const found: Heading[] = [];
  const [first, last] = within(all, from, from + span);
  for (let i = Math.ceil(first / every) * every; i < last; i += every) {
    const middle = (((all[i]!.begin + all[i]!.end) / 2 - from) * length) / span;
    if (middle >= 0 && middle <= length && all[i]!.text !== "") {
      found.push({ at: middle - room / 2, to: middle + room / 2, text: all[i]!.text });
    }
  }
  return found;
}

// ---- tiles: at depth d a pixel is 2^d by 2^d cells, and shows the worst of them ----

export const TILE = 512;

/** The finest depth at which `span` cells have no more than `pixels` pixels: none is skipped by drawing it at that size. */
export function depthOf(span: number, pixels: number): number {
  return Math.max(0, Math.ceil(Math.log2(span / pixels)));
}

const worst = new Uint8Array(TILE * TILE);

/** Pixels of the tile that begins at cell (column, row) of the map. */
export function paintTile(latency: Latency, shades: Uint8Array, depth: number, column: number, row: number, pixels: Uint32Array): void {
  const size = latency.ids.length;
  const lastRow = Math.min(size, row + TILE * 2 ** depth);
  const lastColumn = Math.min(size, column + TILE * 2 ** depth);
  worst.fill(0);
  for (let r = row; r < lastRow; r++) {
    const line = ((r - row) >> depth) * TILE;
    const end = latency.first[r + 1]!;
    for (let i = seek(latency, r, column); i < end && latency.from[i]! < lastColumn; i++) {
      const place = line + ((latency.from[i]! - column) >> depth);
      if (shades[i]! > worst[place]!) {
        worst[place] = shades[i]!;
      }
    }
  }
  for (let i = 0; i < worst.length; i++) {
    pixels[i] = palette[worst[i]!]!;
  }
}

/** One axis of a tile under a window: which of its pixels are seen, and where on the canvas. null: none. */
export function placeTile(begin: number, depth: number, from: number, span: number, width: number): { source: number; sourceSize: number; to: number; toSize: number } | null {
  const cells = 2 ** depth;
  const source = Math.max(0, Math.floor((from - begin) / cells));
  const end = Math.min(TILE, Math.ceil((from + span - begin) / cells));
  const at = (pixel: number) => Math.round(((begin + pixel * cells - from) * width) / span); // whole pixels: no seams
  return end <= source ? null : { source, sourceSize: end - source, to: at(source), toSize: at(end) - at(source) };
}
