import assert from "node:assert/strict";
import { test } from "node:test";
import { cellOf, codeOf as pageCodeOf, decodeLatency, DEAD, delayOf, fold, type Latency, pick, shade, SHADE_DEAD, SHADE_PART, SHADE_SILENT, shareOf } from "../../src/latency.ts";
import { cellAt, depthOf, headings, paintTile, palette, pan, placeTile, runs, thinned, TILE, whole, zoom } from "../../src/ui/heat.ts";
import { words } from "../../src/ui/heatmap.tsx";
import type { Element, Incident } from "../../src/model.ts";
import { suspectsOf } from "../../src/suspect.ts";
import { axisOf, marksOf } from "../../src/ui/axes.ts";
import { levelFor, worstPairs } from "../../src/views/mesh.tsx";

/** Code of a delay, as src/core/fleet/delay_code.h makes it. */
function codeOf(ns: number): number {
  const shift = ns < 64 ? 0 : Math.floor(Math.log2(ns)) - 6;
  return 1 + (ns < 64 ? ns : (shift + 1) * 64 + (Math.floor(ns / 2 ** shift) % 64));
}

/** cells: [sender, receiver, ns, state, paths, dead], as indices; without the last two one path. Two NICs a host, two hosts a leaf. */
function encode(size: number, cells: readonly (readonly [number, number, number, number, number?, number?])[], at = 0n): ArrayBuffer {
  const sorted = [...cells].sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  const names = new TextEncoder().encode(Array.from({ length: size }, (_, i) => `h${i >> 1}/eth${i & 1}\tleaf${i >> 2}\t${i & 1}\n`).join(""));
  const buffer = new ArrayBuffer(24 + 4 * (2 * size + 1) + 11 * cells.length + names.length);
  const head = new DataView(buffer);
  head.setUint32(0, 0x32584c46, true);
  head.setUint32(4, size, true);
  head.setUint32(8, cells.length, true);
  head.setBigInt64(16, at, true);
  new Uint32Array(buffer, 24, size).set(Array.from({ length: size }, (_, i) => 10 * i));
  const first = new Uint32Array(buffer, 24 + 4 * size, size + 1);
  sorted.forEach((c) => first[c[1] + 1]!++);
  first.forEach((n, i) => { first[i] = n + (first[i - 1] ?? 0); });
  let place = 24 + 4 * (2 * size + 1);
  new Uint32Array(buffer, place, cells.length).set(sorted.map((c) => c[0]));
  new Int16Array(buffer, (place += 4 * cells.length), cells.length).set(sorted.map((c) => (c[2] === 0 ? 0 : codeOf(c[2]))));
  new Int16Array(buffer, (place += 2 * cells.length), cells.length).set(sorted.map((c) => (c[2] === 0 ? 0 : codeOf(2 * c[2]))));
  new Uint8Array(buffer, (place += 2 * cells.length), cells.length).set(sorted.map((c) => c[3]));
  new Uint8Array(buffer, (place += cells.length), cells.length).set(sorted.map((c) => c[4] ?? 1));
  new Uint8Array(buffer, (place += cells.length), cells.length).set(sorted.map((c) => c[5] ?? (c[3] === DEAD ? 1 : 0)));
  new Uint8Array(buffer, place + cells.length).set(names);
  return buffer;
}

function random(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

test("a zoom keeps the cell under the pointer", () => {
  const size = 2000;
  let w = whole(size);
  const before = cellAt(w, size, 0.3, 0.8);
  for (let i = 0; i < 12; i++) {
    w = zoom(w, size, 0.8, 0.3, 0.8);
  }
  assert.deepEqual(cellAt(w, size, 0.3, 0.8), before);
  assert.ok(w.span < size / 10);
});

test("a window never leaves the map", () => {
  const w = pan(zoom(whole(100), 100, 0.1, 0.5, 0.5), 100, 99, -99);
  assert.ok(w.x + w.span <= 100 && w.y >= 0);
  assert.deepEqual(zoom(w, 100, 1000, 0, 0), whole(100));
});

test("a column sends, a row receives; dead is not fast, unmeasured is not zero", () => {
  const m = decodeLatency(encode(3, [[1, 0, 100, 1], [0, 1, 5_000, DEAD, 4, 1], [2, 1, 0, 0]], 1_795_000_000_000_000_001n));
  assert.deepEqual(m.labels, ["h0/eth0", "h0/eth1", "h1/eth0"]);
  assert.deepEqual(m.places[2], { host: "h1", leaf: "leaf0", rail: "0" });
  assert.deepEqual([...m.ids], [0, 10, 20]);
  assert.equal(m.atNs, 1_795_000_000_000_000_001n);
  assert.deepEqual(cellOf(m, m.p50, 1, 0), { silent: false, ns: 100, paths: 1, dead: 0 });
  const dead = cellOf(m, m.p50, 0, 1)!;
  assert.deepEqual([dead.paths, dead.dead], [4, 1]);
  assert.ok(Math.abs(dead.ns! / 5_000 - 1) < 0.016);
  assert.deepEqual(cellOf(m, m.p50, 2, 1), { silent: true, ns: null, paths: 1, dead: 0 });
  assert.equal(cellOf(m, m.p50, 2, 0), null);
  assert.equal(cellOf(m, m.p50, 2, 2), null);
  assert.ok(Math.abs(cellOf(m, m.p99, 1, 0)!.ns! / 200 - 1) < 0.016);
});

test("a cell's words: how many paths are dead, who isn't heard, what nobody measures", () => {
  const of = (silent: boolean, ns: number | null, paths: number, dead: number) => words({ silent, ns, paths, dead }, null);
  assert.equal(of(false, 4_100, 4, 1), "4.10 us; 1 of 4 paths is dead");
  assert.equal(of(false, null, 4, 4), "all 4 paths are dead");
  assert.equal(of(false, 4_100, 4, 0), "4.10 us");
  assert.equal(of(true, null, 4, 0), "the measuring host is silent");
  assert.equal(words(null, null), "not measured");
  assert.equal(words(null, 5n), "not measured then");
});

/** All pairs of a level, by looking at each cell of the finer one. */
function folded(m: Latency, nameOf: (i: number) => string, from: string, to: string): { ns: number | null; paths: number; dead: number; p99: number | null } | null {
  const cells = [];
  for (let row = 0; row < m.ids.length; row++) {
    for (let column = 0; column < m.ids.length; column++) {
      const [cell, tail] = [cellOf(m, m.p50, column, row), cellOf(m, m.p99, column, row)];
      if (nameOf(column) === from && nameOf(row) === to && cell !== null) {
        cells.push({ ...cell, p99: tail!.ns });
      }
    }
  }
  const known = cells.map((c) => c.ns).filter((ns) => ns !== null);
  const tails = cells.map((c) => c.p99).filter((ns) => ns !== null);
  return cells.length === 0 ? null : { ns: known.length === 0 ? null : known.reduce((x, y) => x + y, 0) / known.length, p99: tails.length === 0 ? null : Math.max(...tails),
    paths: cells.reduce((n, c) => n + c.paths, 0), dead: cells.reduce((n, c) => n + c.dead, 0) };
}

test("a host's or a leaf's cell stands for all its pairs: mean, worst tail, each path; what it has none of stays empty", () => {
  const next = random(5);
  const size = 24;
  const cells: [number, number, number, number, number, number][] = [];
  for (let from = 0; from < size; from++) {
    for (let to = 0; to < size; to++) {
      if (next() < 0.08) {
        const dead = next() < 0.3 ? 1 + Math.floor(next() * 4) : 0;
        cells.push([from, to, dead === 4 ? 0 : 1_000 + Math.floor(next() * 9_000), dead > 0 ? DEAD : 1, 4, dead]);
      }
    }
  }
  const m = decodeLatency(encode(size, cells));
  for (const level of ["host", "leaf"] as const) {
    const f = fold(m, level);
    assert.equal(f.labels.length, level === "host" ? 12 : 6);
    f.labels.forEach((to, row) => f.labels.forEach((from, column) => {
      const [is, tail, should] = [cellOf(f, f.p50, column, row), cellOf(f, f.p99, column, row), folded(m, (i) => m.places[i]![level], from, to)];
      assert.equal(is === null, should === null, `${from} ${to}`);
      if (is !== null && should !== null) {
        assert.deepEqual([is.paths, is.dead, is.ns === null], [should.paths, should.dead, should.ns === null]);
        assert.ok(should.ns === null || Math.abs(is.ns! / should.ns - 1) < 0.016);
        assert.equal(tail!.ns, should.p99);
      }
    }));
  }
});

test("of more than 255 paths one dead one is still seen, and one alive one", () => {
  const all = (dead: (i: number) => number) => decodeLatency(encode(4, Array.from({ length: 16 }, (_, i) => [i & 3, i >> 2, 5_000, dead(i) > 0 ? DEAD : 1, 60, dead(i)] as const)));
  const one = fold(all((i) => (i === 7 ? 1 : 0)), "leaf");
  assert.deepEqual([one.paths[0], one.dead[0], shade(one, one.p50).of[0]], [255, 1, SHADE_PART]);
  const most = fold(all((i) => (i === 7 ? 59 : 60)), "leaf");
  assert.deepEqual([most.dead[0], shade(most, most.p50).of[0]], [254, SHADE_PART]);
});

test("what is picked keeps its cells, in the order asked for", () => {
  const m = decodeLatency(encode(6, [[0, 5, 4_000, 1], [5, 0, 6_000, DEAD, 4, 2], [1, 2, 9_000, 1], [4, 5, 7_000, 1]]));
  const p = pick(m, [5, 4, 0]);
  assert.deepEqual(p.labels, ["h2/eth1", "h2/eth0", "h0/eth0"]);
  const back = (c: number, r: number) => cellOf(p, p.p50, c, r);
  assert.deepEqual(back(0, 2), cellOf(m, m.p50, 5, 0));
  assert.deepEqual(back(2, 0), cellOf(m, m.p50, 0, 5));
  assert.deepEqual(back(1, 0), cellOf(m, m.p50, 4, 5));
  assert.equal(p.from.length, 3);
});

test("the worst pairs: the longest delays beside the most dead paths, neither hides the other", () => {
  const m = decodeLatency(encode(4, [[0, 1, 4_000, 1], [0, 2, 94_000, 1], [0, 3, 9_000, DEAD, 4, 1], [1, 0, 0, DEAD, 4, 4], [2, 1, 0, 0]]));
  const at = (spots: { column: number; row: number }[]) => spots.map((c) => [c.column, c.row]);
  const w = worstPairs(m, m.p50, 2);
  assert.deepEqual([at(w.slow), at(w.dead), w.mute, w.deaf], [[[0, 2], [0, 3]], [[1, 0], [0, 3]], [], []]);
});

test("a NIC that nobody hears is one line, and hides no other pair", () => {
  const cells = Array.from({ length: 12 }, (_, to) => [3, to, 0, DEAD, 4, 4] as const).filter(([, to]) => to !== 3);
  const m = decodeLatency(encode(12, [...cells, [0, 1, 4_000, 1], [5, 6, 7_000, DEAD, 4, 1], [8, 6, 5_000, 1]]));
  const w = worstPairs(m, m.p50, 4);
  assert.deepEqual([w.mute, w.deaf, w.dead], [[3], [], [{ column: 5, row: 6 }]]);
  assert.deepEqual(w.slow[0], { column: 5, row: 6 });
});

test("names of what open incidents accuse are marked on the axes, and at each level the row in which it is", () => {
  const m = decodeLatency(encode(8, [[0, 1, 4_000, 1]]));
  const nic = (of: number, host: string): Element => ({ kind: "nic", direction: "out", name: `${host}/eth`, places: [{ kind: "nic", host, nic: of, name: `${host}/eth` }] });
  const incident = (element: Element, one_of: Element[] = []): Incident => ({ incident: 1, element, one_of, state: "open", severity: "page", cause: "", text: "", since_utc_ns: 1, alerts: 1, alerts_total: 1, hosts: 1, acknowledged_by: null, silenced: false });
  const texts = (of: Latency, incidents: Incident[]) => {
    const axis = axisOf(of, marksOf(m, suspectsOf(incidents)));
    return [axis.rows, axis.hosts, axis.leaves].map((line) => line.map((r) => r.text).filter((text) => /[■▲]/.test(text)));
  };
  const sure = [incident(nic(30, "h1"))]; // the fourth
  assert.deepEqual(texts(m, sure), [["■eth1 · rail 1"], ["■h1"], ["■leaf0"]]);
  assert.deepEqual(texts(fold(m, "host"), sure), [["■h1"], ["■h1"], ["■leaf0"]]);
  assert.deepEqual(texts(fold(m, "leaf"), sure)[0], ["■leaf0"]);
  const host: Element = { kind: "host", direction: null, name: "h3", places: [{ kind: "host", host: "h3", name: "h3" }] };
  const maybe = incident({ kind: "unknown", direction: null, name: null, places: [] }, [nic(30, "h1"), host]);
  assert.deepEqual(texts(m, [maybe]), [["▲eth1 · rail 1"], ["▲h1", "▲h3"], ["▲leaf0", "▲leaf1"]]);
  assert.deepEqual(texts(m, [maybe, ...sure]), [["■eth1 · rail 1"], ["■h1", "▲h3"], ["■leaf0", "▲leaf1"]]);
  assert.deepEqual(texts(m, []), [[], [], []]);
});

test("a host that hangs on several leaves stands under none; leaves are named once", () => {
  const m = decodeLatency(encode(8, [[0, 1, 4_000, 1]]));
  const rails = { ...m, places: m.places.map((p, i) => ({ ...p, leaf: `leaf${i % 2}` })) };
  assert.deepEqual(fold(m, "host").places.map((p) => p.leaf), ["leaf0", "leaf0", "leaf1", "leaf1"]);
  assert.deepEqual(fold(rails, "host").places.map((p) => p.leaf), ["", "", "", ""]);
  assert.deepEqual([axisOf(fold(m, "leaf")).leaves.length, axisOf(fold(m, "host")).leaves.length], [0, 2]);
});

test("where no name has room each n-th is told, in its place", () => {
  const rows = Array.from({ length: 64 }, (_, i) => ({ begin: i, end: i + 1, text: `leaf${i}` }));
  const names = thinned(rows, 0, 64, 256, 13);
  assert.deepEqual(names.map((h) => h.text).slice(0, 3), ["leaf0", "leaf4", "leaf8"]);
  assert.equal((names[1]!.at + names[1]!.to) / 2, 4.5 * 4);
  names.slice(1).forEach((h, i) => assert.ok(h.at >= names[i]!.to));
});

test("the map begins with the finest rows that can be told apart", () => {
  assert.equal(levelFor(decodeLatency(encode(200, []))), "nic");
  assert.equal(levelFor(decodeLatency(encode(500, []))), "host");
  assert.equal(levelFor(decodeLatency(encode(4_000, []))), "leaf");
});

test("borders stand where the host or leaf changes; headings only where there is room", () => {
  const { places } = decodeLatency(encode(8, []));
  assert.deepEqual(runs(places, (p) => p.leaf), [{ begin: 0, end: 4, text: "leaf0" }, { begin: 4, end: 8, text: "leaf1" }]);
  assert.equal(runs(places, (p) => p.host).length, 4);
  const [first, ...rest] = headings(runs(places, (p) => p.leaf), 2, 4, 400, 30);
  assert.deepEqual(first, { at: 0, to: 200, text: "leaf0" });
  assert.equal(rest.length, 1);
  assert.equal(headings(runs(places, (p) => p.host), 0, 8, 60, 30).length, 0);
});

test("what is cut off, or something else, is refused", () => {
  const whole_ = encode(3, [[1, 0, 100, 1], [0, 1, 5_000, 1]]);
  for (const size of [0, 10, 24, 40, 60, whole_.byteLength - 8]) {
    assert.throws(() => decodeLatency(whole_.slice(0, size)), RangeError, `${size} bytes`);
  }
  assert.throws(() => decodeLatency(new TextEncoder().encode("{\"columns\": [\"from\", \"to\"]}").buffer), RangeError);
});

test("delays come back within 1.6 %, exactly below 128 ns, with their sign", () => {
  for (let ns = 1; ns < 4e9; ns = Math.ceil(ns * 1.37)) {
    const back = delayOf(codeOf(ns))!;
    assert.ok(ns < 128 ? back === ns : Math.abs(back / ns - 1) < 0.016, `${ns} ${back}`);
    assert.equal(delayOf(-codeOf(ns)), -back);
    assert.deepEqual([pageCodeOf(ns), pageCodeOf(-ns)], [codeOf(ns), -codeOf(ns)]);
  }
  assert.equal(delayOf(0), null);
});

test("shares are logarithmic and stay within 0 and 1", () => {
  assert.equal(shareOf(1_000, 1_000, 100_000), 0);
  assert.ok(Math.abs(shareOf(10_000, 1_000, 100_000) - 0.5) < 1e-9);
  assert.equal(shareOf(5, 5, 5), 0);
  assert.equal(shareOf(9e9, 1_000, 100_000), 1);
});

test("shades: the slowest is brightest, dead is its own, what isn't measured has none", () => {
  const m = decodeLatency(encode(4, [[0, 1, 4_000, 1], [0, 2, 94_000, 1], [0, 3, 0, DEAD], [1, 0, 0, 0]]));
  const s = shade(m, m.p50);
  assert.deepEqual([s.of[0], s.of[1], s.of[2], s.of[3]], [SHADE_SILENT, 2, 253, SHADE_DEAD]);
  assert.equal(s.measured, 3);
  assert.ok(Math.abs(s.least / 4_000 - 1) < 0.016 && Math.abs(s.most / 94_000 - 1) < 0.016);
  const none = shade(decodeLatency(encode(2, [])), new Int16Array(0));
  assert.deepEqual([none.least, none.most, none.measured], [0, 0, 0]);
});

/** What tiles show of a cell's place at a depth, by looking at each cell. */
function worstOf(m: Latency, of: Uint8Array, depth: number, column: number, row: number): number {
  let most = 0;
  const side = 2 ** depth;
  for (let r = row; r < Math.min(row + side, m.ids.length); r++) {
    for (let i = m.first[r]!; i < m.first[r + 1]!; i++) {
      most = m.from[i]! >= column && m.from[i]! < column + side ? Math.max(most, of[i]!) : most;
    }
  }
  return most;
}

test("at every depth a pixel shows the worst of its cells: a slow or dead pair is never lost by zooming out", () => {
  const size = 1_300;
  const next = random(7);
  const cells = new Map<number, [number, number, number, number]>();
  for (let i = 0; i < 9_000; i++) {
    const [from, to] = [Math.floor(next() * size), Math.floor(next() * size)];
    cells.set(to * size + from, [from, to, 1_000 + Math.floor(next() * 9_000), next() < 0.01 ? DEAD : 1]);
  }
  const m = decodeLatency(encode(size, [...cells.values()]));
  const { of } = shade(m, m.p50);
  const pixels = new Uint32Array(TILE * TILE);
  for (const depth of [0, 1, 2]) {
    const side = TILE * 2 ** depth;
    for (let row = 0; row < size; row += side) {
      for (let column = 0; column < size; column += side) {
        paintTile(m, of, depth, column, row, pixels);
        for (let i = 0; i < 3_000; i++) {
          const [x, y] = [Math.floor(next() * TILE), Math.floor(next() * TILE)];
          assert.equal(pixels[y * TILE + x], palette[worstOf(m, of, depth, column + x * 2 ** depth, row + y * 2 ** depth)]);
        }
      }
    }
  }
});

test("the depth leaves no cell out: never more cells than pixels, and never coarser than need be", () => {
  for (let span = 4; span < 100_000; span = Math.ceil(span * 1.3)) {
    const depth = depthOf(span, 720);
    assert.ok(span / 2 ** depth <= 720);
    assert.ok(depth === 0 || span / 2 ** (depth - 1) > 720);
  }
});

test("tiles cover a window without gap or overlap, wherever it is", () => {
  const next = random(11);
  for (let i = 0; i < 500; i++) {
    const size = 20 + Math.floor(next() * 5_000);
    const span = 4 + next() * (size - 4);
    const from = next() * (size - span);
    const depth = depthOf(span, 720);
    const side = TILE * 2 ** depth;
    let reached: number | null = null;
    for (let begin = Math.floor(from / side) * side; begin < from + span; begin += side) {
      const p = placeTile(begin, depth, from, span, 720);
      if (p) {
        assert.ok(reached === null ? p.to <= 0 : p.to === reached, `${p.to} after ${reached}`);
        assert.ok(p.source >= 0 && p.source + p.sourceSize <= TILE && p.toSize >= 0);
        reached = p.to + p.toSize;
      }
    }
    assert.ok(reached !== null && reached >= 720);
  }
});

test("an empty matrix is one", () => {
  const m = decodeLatency(encode(0, []));
  assert.equal(m.ids.length, 0);
  assert.equal(shade(m, m.p50).measured, 0);
});
