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

/** The measured cells alone, least first, with their colours: of 4 million cells of 2,000 NICs one in a hundred is measured. */
export interface Cells {
  places: Uint32Array; // row * size + column
  colours: Uint32Array;
}

const ORDERS = 65_536; // steps between least and most: finer than any colour

/** Of the places that are measured. null: so many that `paint` is as quick. */
export function cellsOf(values: Float64Array, measured: Uint32Array, least: number, most: number): Cells | null {
  if (measured.length > 200_000 && measured.length > values.length / 8) {
    return null;
  }
  const keys = new Float64Array(measured.length); // order and place in one number: sorting plain numbers is quick
  measured.forEach((place, i) => {
    const value = values[place]!;
    const order = value === Infinity ? ORDERS + 1 : Math.floor(Math.min(Math.max(shareOf(value, least, most), 0), 1) * ORDERS);
    keys[i] = order * values.length + place;
  });
  keys.sort();
  const places = new Uint32Array(keys.length);
  const colours = new Uint32Array(keys.length);
  keys.forEach((key, i) => {
    const place = key % values.length;
    places[i] = place;
    colours[i] = values[place] === Infinity ? deadColour : colour(shareOf(values[place]!, least, most));
  });
  return { places, colours };
}

const deadColour = 0xff2a1fb4;

/** Which pixels show row (or column) r of a window that begins at `from`: first[r] … last[r]; first > last: none. */
function spread(from: number, span: number, size: number, width: number): { first: Int32Array; last: Int32Array } {
  const first = new Int32Array(size).fill(width);
  const last = new Int32Array(size).fill(-1);
  const scale = span / width;
  for (let p = 0; p < width; p++) {
    const r0 = Math.floor(from + p * scale);
    const r1 = Math.min(size, Math.max(r0 + 1, Math.floor(from + (p + 1) * scale)));
    for (let r = r0; r < r1; r++) {
      first[r] = Math.min(first[r]!, p);
      last[r] = p;
    }
  }
  return { first, last };
}

/** What `paint` does, over pixels that are drawn as unmeasured already: the worst comes last and stays. */
export function paintCells(cells: Cells, size: number, w: Window, width: number, pixels: Uint32Array): void {
  const rows = spread(w.y, w.span, size, width);
  const columns = spread(w.x, w.span, size, width);
  for (let i = 0; i < cells.places.length; i++) {
    const row = Math.floor(cells.places[i]! / size);
    const column = cells.places[i]! - row * size;
    const c0 = columns.first[column]!;
    const c1 = columns.last[column]! + 1;
    for (let y = rows.first[row]!; c0 < c1 && y <= rows.last[row]!; y++) {
      pixels.fill(cells.colours[i]!, y * width + c0, y * width + c1);
    }
  }
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
      pixels[py * width + px] = worst === worst ? (worst === Infinity ? deadColour : colour(shareOf(worst, least, most))) : unmeasured(px, py);
    }
  }
}
