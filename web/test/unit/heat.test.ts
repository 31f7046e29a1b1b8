import assert from "node:assert/strict";
import { test } from "node:test";
import { cellAt, cellsOf, colour, paint, paintCells, pan, shareOf, whole, zoom } from "../../src/ui/heat.ts";

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

test("one slow pair among a million is seen from afar, and one dead one too", () => {
  const size = 1000;
  const values = new Float64Array(size * size).fill(4_000);
  values[123 * size + 456] = 94_000;
  values[700 * size + 100] = Infinity;
  const pixels = new Uint32Array(100 * 100);
  paint(values, size, whole(size), 100, 4_000, 94_000, pixels, () => 0);
  assert.equal(pixels[12 * 100 + 45], colour(1));
  assert.equal(pixels[70 * 100 + 10], 0xff2a1fb4);
  assert.equal(pixels[0], colour(0));
});

test("only what nobody measured is drawn as unmeasured", () => {
  const values = new Float64Array(16).fill(Number.NaN);
  values[5] = 1_000;
  const pixels = new Uint32Array(4);
  paint(values, 4, whole(4), 2, 1_000, 2_000, pixels, () => 7);
  assert.deepEqual([...pixels].map((p) => p === 7), [false, true, true, true]);
});

test("shares are logarithmic and stay within 0 and 1 for what is within the limits", () => {
  assert.equal(shareOf(1_000, 1_000, 100_000), 0);
  assert.ok(Math.abs(shareOf(10_000, 1_000, 100_000) - 0.5) < 1e-9);
  assert.equal(shareOf(5, 5, 5), 0);
});

test("a map of 2,000 by 2,000 is painted within a frame or two", () => {
  const size = 2000;
  const values = new Float64Array(size * size).map((_, i) => 1_000 + (i % 977));
  const pixels = new Uint32Array(720 * 720);
  paint(values, size, whole(size), 720, 1_000, 2_000, pixels, () => 0);
  assert.ok(pixels.every((p) => p !== 0));
});

const measuredOf = (values: Float64Array) => Uint32Array.from([...values.keys()].filter((i) => values[i] === values[i]));

test("painting the measured cells alone is the same picture", () => {
  const size = 150;
  let seed = 7;
  const next = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const values = new Float64Array(size * size).fill(Number.NaN);
  for (let i = 0; i < 900; i++) {
    values[Math.floor(next() * values.length)] = next() < 0.05 ? Infinity : 1_000 * (1 + Math.floor(next() * 90));
  }
  const cells = cellsOf(values, measuredOf(values), 1_000, 91_000)!;
  for (let i = 0; i < 40; i++) {
    const span = 4 + next() * (size - 4);
    const w = i === 0 ? whole(size) : { x: next() * (size - span), y: next() * (size - span), span };
    const one = new Uint32Array(64 * 64);
    const other = new Uint32Array(64 * 64).fill(7);
    paint(values, size, w, 64, 1_000, 91_000, one, () => 7);
    paintCells(cells, size, w, 64, other);
    assert.deepEqual(other, one);
  }
});

test("a map that is measured everywhere is not sorted", () => {
  const values = new Float64Array(700 * 700).fill(5);
  assert.equal(cellsOf(values, measuredOf(values), 1, 9), null);
});
