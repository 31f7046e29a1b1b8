import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, duration, fleet, parseInstant, rate } from "../../src/time.ts";

test("durations have three digits and a unit", () => {
  assert.equal(duration(94_000), "94 us");
  assert.equal(duration(1_234), "1.23 us");
  assert.equal(duration(-37), "-37 ns");
  assert.equal(duration(0), "0 ns");
  assert.equal(duration(3.6e12), "1 h");
});

test("what is not known is never shown as a number", () => {
  for (const f of [duration, rate, bytes]) {
    assert.equal(f(null), "–");
    assert.equal(f(undefined), "–");
  }
  assert.equal(duration(Number.NaN), "–");
});

test("an instant keeps its nanoseconds, however it is written", () => {
  const ns = 1732358587204512031n;
  assert.equal(parseInstant("1732358587204512031"), ns);
  assert.equal(parseInstant("1732358587 204 512 031"), ns);
  assert.equal(parseInstant("1732358587.204512031"), ns);
  assert.equal(parseInstant("2024-11-23T10:43:07.204512031Z"), ns);
  assert.equal(parseInstant("yesterday"), null);
  assert.equal(parseInstant(""), null);
  assert.equal(fleet(ns), "1732358587 204 512 031");
});

test("ages", () => {
  assert.equal(ago(0n, 500_000_000n), "now");
  assert.equal(ago(0n, 90_000_000_000n), "1.50 min ago");
  assert.equal(ago(5_000_000_000n, 0n), "in 5 s");
});
