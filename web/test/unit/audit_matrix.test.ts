import assert from "node:assert/strict";
import { test } from "node:test";
import { cellOf } from "../../src/latency.ts";
import { latencyOf } from "../../src/views/audit_matrix.tsx";

const nic = (host: string) => ({ nic: 7, host, name: "nic0", leaf: "leaf0", leaf_found: null, unmeasured: 0, lost_out: 0, lost_in: 0, out_ns: 0, in_ns: 0, note: null });

test("a matrix by senders is a heat map by receivers", () => {
  const latency = latencyOf({ limit_ns: 1000, nics: [nic("a"), nic("b"), nic("c")], delay_ns: [[null, 100, -1], [50, null, null], [70, 80, null]] });
  assert.deepEqual(latency.labels, ["a/nic0", "b/nic0", "c/nic0"]);
  assert.equal(cellOf(latency, latency.p50, 0, 1)?.ns, 100);
  assert.equal(cellOf(latency, latency.p50, 1, 0)?.ns, 50);
  assert.deepEqual(cellOf(latency, latency.p50, 0, 2), { silent: false, ns: null, paths: 1, dead: 1 }); // nothing arrived
  assert.equal(cellOf(latency, latency.p50, 1, 2), null); // not measured
});
