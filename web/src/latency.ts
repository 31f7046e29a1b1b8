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
  paths: Uint8Array; // of the pair
  dead: Uint8Array; // of those
  places: Place[]; // of each NIC
}

/** Where a row or column stands: what its borders and headings are made of. "": not known, or not one alone. */
export interface Place {
  leaf: string;
  host: string;
  rail: string;
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

/** The code of a delay (src/core/fleet/delay_code.h). */
export function codeOf(ns: number): number {
  const magnitude = Math.min(Math.round(Math.abs(ns)), 2 ** 40);
  const shift = magnitude < 64 ? 0 : Math.floor(Math.log2(magnitude)) - 6;
  const code = Math.min(CODES, 1 + (magnitude < 64 ? magnitude : (shift + 1) * 64 + (Math.floor(magnitude / 2 ** shift) % 64)));
  return ns < 0 ? -code : code;
}

/** Throws what is no matrix. */
export function decodeLatency(buffer: ArrayBuffer): Latency {
  const head = new DataView(buffer);
  if (buffer.byteLength < HEAD || head.getUint32(0, true) !== 0x32584c46) {
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
  const paths = new Uint8Array(buffer, take(cells), cells);
  const dead = new Uint8Array(buffer, take(cells), cells);
  const names = new TextDecoder().decode(new Uint8Array(buffer, place)).split("\n"); // each ends with one
  if (first[nics] !== cells || names.pop() !== "" || names.length !== nics) {
    throw new RangeError("a latency matrix that was cut off");
  }
  const parts = names.map((line) => line.split("\t"));
  const labels = parts.map(([label = ""]) => label);
  const places = parts.map(([label = "", leaf = "", rail = ""]) => ({ leaf, host: label.split("/", 1)[0]!, rail }));
  return { atNs: at === 0n ? null : at, stepS: head.getUint32(12, true), ids, labels, first, from, p50, p99, state, paths, dead, places };
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

/** What is known of a pair. null: nobody measures it. */
export interface Cell {
  silent: boolean; // who measures it isn't heard
  ns: number | null; // of the paths that are alive
  paths: number;
  dead: number;
}

export function cellOf(latency: Latency, codes: Int16Array, from: number, to: number): Cell | null {
  const i = seek(latency, to, from);
  return i === latency.first[to + 1] || latency.from[i] !== from ? null
    : { silent: latency.state[i] === 0, ns: delayOf(codes[i]!), paths: latency.paths[i]!, dead: latency.dead[i]! };
}

/** Only these rows and columns, in this order. */
export function pick(latency: Latency, indices: readonly number[]): Latency {
  const column = new Map(indices.map((old, now) => [old, now]));
  const cells: number[][] = indices.map((row) => {
    const found: number[] = [];
    for (let i = latency.first[row]!; i < latency.first[row + 1]!; i++) {
      if (column.has(latency.from[i]!)) {
        found.push(i);
      }
    }
    return found.sort((a, b) => column.get(latency.from[a]!)! - column.get(latency.from[b]!)!);
  });
  const all = cells.flat();
  const first = new Uint32Array(indices.length + 1);
  cells.forEach((row, i) => { first[i + 1] = first[i]! + row.length; });
  return {
    ...latency,
    first,
    ids: Uint32Array.from(indices, (i) => latency.ids[i]!),
    labels: indices.map((i) => latency.labels[i]!),
    places: indices.map((i) => latency.places[i]!),
    from: Uint32Array.from(all, (i) => column.get(latency.from[i]!)!),
    p50: Int16Array.from(all, (i) => latency.p50[i]!),
    p99: Int16Array.from(all, (i) => latency.p99[i]!),
    state: Uint8Array.from(all, (i) => latency.state[i]!),
    paths: Uint8Array.from(all, (i) => latency.paths[i]!),
    dead: Uint8Array.from(all, (i) => latency.dead[i]!),
  };
}

export type Level = "nic" | "host" | "leaf";

/** One row and column for each host or leaf: of all pairs between two of them the mean of the medians, the worst tail, all their
 *  paths (255 stands for more; then dead ones keep their share). */
export function fold(latency: Latency, level: Exclude<Level, "nic">): Latency {
  const names = latency.places.map((p) => (level === "host" ? p.host : p.leaf || "leaf not known"));
  const labels = [...new Set(names)];
  const index = new Map(labels.map((name, i) => [name, i]));
  const group = Uint32Array.from(names, (name) => index.get(name)!);
  const size = labels.length;
  const delays = Float64Array.from({ length: 2 * CODES + 1 }, (_, i) => delayOf(i - CODES) ?? 0);
  const [sum, known, paths, dead] = [new Float64Array(size * size), new Uint32Array(size * size), new Uint32Array(size * size), new Uint32Array(size * size)];
  const [p99, state, met] = [new Int16Array(size * size), new Uint8Array(size * size), new Uint8Array(size * size)];
  for (let to = 0; to < latency.ids.length; to++) {
    const row = group[to]! * size;
    for (let i = latency.first[to]!, end = latency.first[to + 1]!; i < end; i++) {
      const at = row + group[latency.from[i]!]!;
      const code = latency.p50[i]!;
      met[at] = 1;
      sum[at]! += delays[code + CODES]!;
      known[at]! += code === 0 ? 0 : 1;
      p99[at] = p99[at] === 0 || (latency.p99[i] !== 0 && latency.p99[i]! > p99[at]!) ? latency.p99[i]! : p99[at]!;
      state[at] = Math.max(state[at]!, latency.state[i]!);
      paths[at]! += latency.paths[i]!;
      dead[at]! += latency.dead[i]!;
    }
  }
  const alone = new Map<string, string>(); // the leaf of a host whose NICs hang on one
  latency.places.forEach((p) => alone.set(p.host, (alone.get(p.host) ?? p.leaf) === p.leaf ? p.leaf : ""));
  const cells = met.reduce<number[]>((list, is, i) => (is === 1 && list.push(i), list), []);
  const first = new Uint32Array(size + 1);
  cells.forEach((i) => first[Math.floor(i / size) + 1]!++);
  first.forEach((n, i) => { first[i] = n + (first[i - 1] ?? 0); });
  const shrink = (i: number) => Math.max(1, paths[i]! / 255);
  return {
    ...latency,
    labels,
    first,
    ids: Uint32Array.from(labels, (_, i) => i),
    places: labels.map((name) => ({ leaf: level === "leaf" ? name : (alone.get(name) ?? ""), host: level === "host" ? name : "", rail: "" })),
    from: Uint32Array.from(cells, (i) => i % size),
    p50: Int16Array.from(cells, (i) => (known[i] === 0 ? 0 : codeOf(sum[i]! / known[i]!))),
    p99: Int16Array.from(cells, (i) => p99[i]!),
    state: Uint8Array.from(cells, (i) => state[i]!),
    paths: Uint8Array.from(cells, (i) => Math.round(paths[i]! / shrink(i))),
    dead: Uint8Array.from(cells, (i) => (dead[i] === paths[i] ? Math.round(paths[i]! / shrink(i)) : Math.min(Math.round(paths[i]! / shrink(i)) - 1, Math.ceil(dead[i]! / shrink(i))))),
  };
}

/** Cells in 256 shades: 0 nobody measures it, 1 who measures it is silent, 2 … 253 from the least delay to the most, logarithmic: 94 us
 *  jump out among 4 us; 254 some paths are dead, 255 all are. */
export interface Shades {
  of: Uint8Array; // by cell
  least: number; // ns
  most: number;
  measured: number; // cells
  byCode: Uint8Array; // of a delay code: as if no path were dead
}

export function shadeOfCode(shades: Shades, code: number): number {
  return shades.byCode[code + CODES]!;
}

export const SHADE_SILENT = 1;
export const SHADE_LEAST = 2;
export const SHADE_MOST = 253;
export const SHADE_PART = 254;
export const SHADE_DEAD = 255;

export function shade(latency: Latency, codes: Int16Array): Shades {
  const used = new Uint8Array(2 * CODES + 1);
  for (let i = 0; i < codes.length; i++) {
    used[codes[i]! + CODES] = 1;
  }
  used[CODES] = 0;
  const least = Math.max(0, delayOf(used.indexOf(1) - CODES) ?? 0);
  const most = Math.max(0, delayOf(used.lastIndexOf(1) - CODES) ?? 0);
  const byCode = used.map((is, i) => (is === 0 ? 0 : SHADE_LEAST + Math.round((SHADE_MOST - SHADE_LEAST) * shareOf(delayOf(i - CODES)!, least, most))));
  const of = new Uint8Array(codes.length);
  let measured = 0;
  for (let i = 0; i < codes.length; i++) {
    const dead = latency.state[i] === DEAD;
    const s = dead && latency.dead[i]! >= latency.paths[i]! ? SHADE_DEAD : dead ? SHADE_PART : byCode[codes[i]! + CODES]! || (latency.state[i] === 0 ? SHADE_SILENT : 0);
    of[i] = s;
    measured += s > SHADE_SILENT ? 1 : 0;
  }
  return { of, least: used.includes(1) ? least : 0, most: used.includes(1) ? most : 0, measured, byCode };
}

/** 0 … 1, logarithmic. */
export function shareOf(value: number, least: number, most: number): number {
  const low = Math.log(Math.max(least, 1));
  const high = Math.log(Math.max(most, 1));
  return high <= low ? 0 : Math.min(Math.max((Math.log(Math.max(value, 1)) - low) / (high - low), 0), 1);
}
