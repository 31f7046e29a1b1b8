// The latency matrix as the controller sends it (docs/openapi.yaml, application/octet-stream): columns of numbers that are
// mapped and not parsed. Rows receive; row i's cells are first[i] to first[i + 1], `from` ascending.
export interface Latency {
  atNs: bigint | null; // null: now
  stepS: number; // what an earlier moment was read at; 0: now
  ids: Uint32Array;
  labels: string[]; // "host/nic"
  first: Uint32Array;
  from: Uint32Array;
  p50: Int16Array; // delay codes; 0: not known
  p99: Int16Array;
  state: Uint8Array;
}

export const DEAD = 4;
const HEAD = 24;
const CODES = 2241; // codes are -CODES to CODES

/** A delay code in ns: exact below 128 ns, else within 1.6 % (src/core/fleet/delay_code.h). null: not known. */
export function delayOf(code: number): number | null {
  if (code === 0) {
    return null;
  }
  const magnitude = Math.abs(code) - 1;
  const shift = Math.min(33, Math.floor(magnitude / 64) - 1);
  const ns = magnitude < 64 ? magnitude : (64 + (magnitude % 64) + (shift > 0 ? 0.5 : 0)) * 2 ** shift;
  return code < 0 ? -ns : ns;
}

/** Throws what is no matrix. */
export function decodeLatency(buffer: ArrayBuffer): Latency {
  const head = new DataView(buffer);
  if (buffer.byteLength < HEAD || head.getUint32(0, true) !== 0x31584c46) {
    throw new RangeError("not a latency matrix");
  }
  const nics = head.getUint32(4, true);
  const cells = head.getUint32(8, true);
  const at = head.getBigInt64(16, true);
  let place = HEAD;
  const take = (size: number) => (place += size) - size;
  const ids = new Uint32Array(buffer, take(4 * nics), nics);
  const first = new Uint32Array(buffer, take(4 * (nics + 1)), nics + 1);
  const from = new Uint32Array(buffer, take(4 * cells), cells);
  const p50 = new Int16Array(buffer, take(2 * cells), cells);
  const p99 = new Int16Array(buffer, take(2 * cells), cells);
  const state = new Uint8Array(buffer, take(cells), cells);
  const labels = new TextDecoder().decode(new Uint8Array(buffer, place)).split("\n"); // each ends with one
  if (first[nics] !== cells || labels.pop() !== "" || labels.length !== nics) {
    throw new RangeError("a latency matrix that was cut off");
  }
  return { atNs: at === 0n ? null : at, stepS: head.getUint32(12, true), ids, labels, first, from, p50, p99, state };
}

/** First cell of row `to` whose sender is `from` or behind it. */
export function seek(latency: Latency, to: number, from: number): number {
  let low = latency.first[to]!;
  let high = latency.first[to + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (latency.from[middle]! < from) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** ns; Infinity: dead; null: nobody measured it. */
export function valueAt(latency: Latency, codes: Int16Array, from: number, to: number): number | null {
  const i = seek(latency, to, from);
  return i === latency.first[to + 1] || latency.from[i] !== from ? null : latency.state[i] === DEAD ? Infinity : delayOf(codes[i]!);
}

/** Cells in 256 shades: 0 not measured, 1 … 254 from the least delay to the most, logarithmic: 94 us jump out among 4 us; 255 dead. */
export interface Shades {
  of: Uint8Array; // by cell
  least: number; // ns
  most: number;
  measured: number; // cells
}

export const SHADE_DEAD = 255;
const SHADE_MOST = 254;

export function shade(latency: Latency, codes: Int16Array): Shades {
  const used = new Uint8Array(2 * CODES + 1);
  for (let i = 0; i < codes.length; i++) {
    if (latency.state[i] !== DEAD) {
      used[codes[i]! + CODES] = 1;
    }
  }
  used[CODES] = 0;
  const least = Math.max(0, delayOf(used.indexOf(1) - CODES) ?? 0);
  const most = Math.max(0, delayOf(used.lastIndexOf(1) - CODES) ?? 0);
  const byCode = used.map((is, i) => (is === 0 ? 0 : 1 + Math.round((SHADE_MOST - 1) * shareOf(delayOf(i - CODES)!, least, most))));
  const of = new Uint8Array(codes.length);
  let measured = 0;
  for (let i = 0; i < codes.length; i++) {
    const s = latency.state[i] === DEAD ? SHADE_DEAD : byCode[codes[i]! + CODES]!;
    of[i] = s;
    measured += s === 0 ? 0 : 1;
  }
  return { of, least: used.includes(1) ? least : 0, most: used.includes(1) ? most : 0, measured };
}

/** 0 … 1, logarithmic. */
export function shareOf(value: number, least: number, most: number): number {
  const low = Math.log(Math.max(least, 1));
  const high = Math.log(Math.max(most, 1));
  return high <= low ? 0 : Math.min(Math.max((Math.log(Math.max(value, 1)) - low) / (high - low), 0), 1);
}
