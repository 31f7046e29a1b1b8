import assert from "node:assert/strict";
import { test } from "node:test";
import type { Incident, IncidentRow, JobFlow, Level } from "../../src/model.ts";
import { toldBy } from "../../src/views/alerts.tsx";
import { aligned, standsOut } from "../../src/views/jobs.tsx";
import { clock } from "../../src/ui/chart.tsx";
import { ticks } from "../../src/ui/strip.tsx";
import { progress } from "../../src/views/check.tsx";
import { amount, rule } from "../../src/views/levels.tsx";

test("a level is a sentence with its limit in the unit that people use", () => {
  const level = (change: Partial<Level>): Level => ({ name: "x", measure: "owd_p99", unit: "ns", within: "leaf", limit: 10_000, state: "met", since_utc_ns: null, paths: 0, paths_unmeasured: 0, paths_beyond: 0, worst: null, by: [], ...change });
  assert.equal(rule(level({})), "p99 one-way delay within a rack ≤ 10 us");
  assert.equal(rule(level({ measure: "loss", unit: "ppm", within: "rail", limit: 1_000 })), "loss within a rail ≤ 0.10 %");
  assert.equal(rule(level({ measure: "hops", unit: "hops", within: "pod", limit: 3 })), "hops within a pod ≤ 3");
  assert.equal(amount(level({ measure: "hops", unit: "hops" }), 5), "5");
});

test("two runs lie on each other from their beginnings on, in the coarser one's steps", () => {
  const past = (step: number, rates: (number | null)[]) => ({ from_utc_ns: 7, step_ns: step * 1e9, rate_bps: rates, owd_ns_p50: rates, owd_ns_p99: rates });
  const { seconds, lines } = aligned(past(10, [null, 4, 8, 2, null, 6]), past(20, [10, 20, 30, 40]), "rate_bps");
  assert.deepEqual(seconds, [0, 20, 40, 60]);
  assert.deepEqual(lines, [[6, 2, 6, null], [10, 20, 30, 40]]);
  assert.deepEqual(aligned(past(10, [null, 4, 8, 2]), past(20, [10]), "owd_ns_p99").lines, [[8, 2], [10, null]]);
});

test("a time axis is written as the rest of the page", () => {
  const noon = new Date(2026, 10, 21, 12, 0, 7).getTime() / 1e3;
  assert.deepEqual([clock(noon, 5), clock(noon, 60), clock(noon, 86_400)], ["12:00:07", "12:00", "11-21"]);
});

test("ticks stand at round delays within the axis", () => {
  assert.deepEqual(ticks(3_000, 60_000), [5_000, 10_000, 20_000, 50_000]);
  assert.deepEqual(ticks(900, 5_000_000), [1_000, 10_000, 100_000, 1_000_000]);
});

test("how far a measurement is", () => {
  assert.equal(progress({ packets: 0, packets_sent: 0 }), 0);
  assert.equal(progress({ packets: 300, packets_sent: 100 }), 33);
  assert.equal(progress({ packets: 300, packets_sent: 301 }), 100);
});

test("an incident is shown as it was told last by then, not as it became", () => {
  const row = (id: number, at: bigint, incident: number, state: string): IncidentRow => ({ id, at_utc_ns: at, word: state, detail: { incident, state } as unknown as Incident });
  const rows = [row(5, 1795247001121727500n, 1, "resolved"), row(4, 1795247001121727400n, 2, "open"), row(3, 1795247001121727300n, 1, "open"), row(2, 1795247001121727200n, 1, "new")];
  const then = (moment: bigint) => toldBy(rows, moment).map((i) => [i.incident, i.state]);
  assert.deepEqual(then(1795247001121727600n), [[1, "resolved"], [2, "open"]]);
  assert.deepEqual(then(1795247001121727400n), [[2, "open"], [1, "open"]]);
  assert.deepEqual(then(1795247001121727199n), []);
});

test("the one flow of 94 us among 4 us ones stands out; where all are alike, or too few, none does", () => {
  const flow = (lane: number, owd: number | null): JobFlow => ({ lane, owd_ns_p50: owd } as unknown as JobFlow);
  const usual = [flow(0, 4_100), flow(1, 3_900), flow(2, 4_000), flow(3, null)];
  assert.equal(standsOut([...usual, flow(4, 94_000)])?.lane, 4);
  assert.equal(standsOut(usual), null);
  assert.equal(standsOut([flow(0, 90_000), flow(1, 94_000), flow(2, 92_000)]), null);
  assert.equal(standsOut([flow(0, 4_000), flow(1, 94_000)]), null);
  assert.equal(standsOut([flow(0, 20), flow(1, 25), flow(2, 900)]), null); // below a microsecond nothing is odd
});
