// The arithmetic of a heat map: which cell is under the pointer, what a zoom keeps in place, which colour a value has.
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

/** Logarithmic: a delay of 94 us jumps out among 4 us ones. */
export function shareOf(value: number, least: number, most: number): number {
  return most <= least ? 0 : (Math.log(Math.max(value, 1)) - Math.log(Math.max(least, 1))) / (Math.log(Math.max(most, 2)) - Math.log(Math.max(least, 1)));
}

/** Shrinks `size`² values to `width`² pixels of window `w`. Of the cells under a pixel the worst is shown: a bad one
 *  never vanishes by zooming out. NaN: nobody measured; such a pixel is `unmeasured` only if all of its cells are. */
export function paint(values: Float64Array, size: number, w: Window, width: number, least: number, most: number, pixels: Uint32Array,
                      unmeasured: (x: number, y: number) => number): void {
  const scale = w.span / width;
  for (let py = 0; py < width; py++) {
    const r0 = Math.floor(w.y + py * scale);
    const r1 = Math.min(size, Math.max(r0 + 1, Math.floor(w.y + (py + 1) * scale)));
    for (let px = 0; px < width; px++) {
      const c0 = Math.floor(w.x + px * scale);
      const c1 = Math.min(size, Math.max(c0 + 1, Math.floor(w.x + (px + 1) * scale)));
      let worst = Number.NaN;
      for (let r = r0; r < r1; r++) {
        for (let c = c0; c < c1; c++) {
          const v = values[r * size + c]!;
          if (v === v && !(v <= worst)) {
            worst = v;
          }
        }
      }
      pixels[py * width + px] = worst === worst ? (worst === Infinity ? 0xff2a1fb4 : colour(shareOf(worst, least, most))) : unmeasured(px, py);
    }
  }
}
