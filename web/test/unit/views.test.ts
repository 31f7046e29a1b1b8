import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding, Level, Port } from "../../src/model.ts";
import { amount, rule } from "../../src/views/levels.tsx";
import { byLeaf, suspects } from "../../src/views/topology.tsx";

test("hosts stand under their leaves, in the order that people count", () => {
  const port = (id: number, host: string, leaf: string | null): Port => ({
    nic: id, host, name: "eth0", rail: 0, leaf, state: "up", since_utc_ns: null, speed_bps: null, carrier_down_count: null, flaps_hour: null, flaps_day: null,
    rx_bps: null, tx_bps: null, rx_errors: null, tx_errors: null, freshness: "live",
  });
  const leaves = byLeaf([port(1, "h1", "leaf10"), port(2, "h2", "leaf2"), port(3, "h1", "leaf10"), port(4, "h3", null)]);
  assert.deepEqual(leaves.map((l) => [l.name, l.hosts.map((h) => h.ports.length)]), [["leaf not known", [1]], ["leaf2", [1]], ["leaf10", [2]]]);
});

test("an element is accused once, and not by what is over", () => {
  const finding = (open: boolean, suspect: unknown): Finding => ({ id: 1, host: "a", open, since_utc_ns: 1, until_utc_ns: null, kind: "path-dead", detail: { suspect: suspect as string } });
  assert.deepEqual(suspects([finding(true, "spine1"), finding(true, { kind: "spine", name: "spine1" }), finding(false, "spine2"), finding(true, null)]), ["spine1"]);
});

test("a level is a sentence with its limit in the unit that people use", () => {
  const level = (change: Partial<Level>): Level => ({ name: "x", measure: "owd_p99", unit: "ns", within: "leaf", limit: 10_000, state: "met", since_utc_ns: null, paths: 0, paths_unmeasured: 0, paths_beyond: 0, worst: null, by: [], ...change });
  assert.equal(rule(level({})), "p99 one-way delay within a rack ≤ 10 us");
  assert.equal(rule(level({ measure: "loss", unit: "ppm", within: "rail", limit: 1_000 })), "loss within a rail ≤ 0.10 %");
  assert.equal(rule(level({ measure: "hops", unit: "hops", within: "pod", limit: 3 })), "hops within a pod ≤ 3");
  assert.equal(amount(level({ measure: "hops", unit: "hops" }), 5), "5");
});
