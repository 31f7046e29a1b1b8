import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPlace, parsePlace } from "../../src/route.ts";

test("an address says the same when it is written again", () => {
  for (const hash of ["#/fleet", "#/mesh/3-7?range=6h&at=1732358587204512031&p=99", "#/jobs/a%2Fb", "#/links?range=7d"]) {
    assert.equal(formatPlace(parsePlace(hash)), hash);
  }
});

test("nonsense is the fleet, now", () => {
  const p = parsePlace("#?range=never&at=tomorrow");
  assert.deepEqual([p.view, p.range, p.at], ["fleet", "1h", null]);
  assert.equal(parsePlace("#/jobs/%E0%A4%A").rest, "%E0%A4%A");
});
