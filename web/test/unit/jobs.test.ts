import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, JobDetail, JobFlow } from "../../src/model.ts";
import { Jobs, Savings } from "../../src/views/jobs.tsx";
import { open } from "./page.ts";
import { reach } from "../../src/ui/chart.tsx";
import { drawn } from "./uplot.ts";

const flow = (lane: number, p50: number, p99: number): JobFlow => ({
  from_host: "h0", from_nic: "nic0", from_rank: 0, to_host: "h1", to_nic: "nic0", to_rank: 1, lane, state: "active", reason: null, rate_bps: 1e9,
  owd_ns_p50: p50, owd_ns_p99: p99, owd_ns_floor: null, queued_ns_p50: null, consumed_ns_p50: null, bound_ns: 500,
});
const job = (name: string, user: number, change: Partial<Job>): Job => ({
  job: name, user, state: "running", since_utc_ns: 1_000_000_000, heard_utc_ns: 2_000_000_000, ranks: 8, processes: 8, processes_silent: 0, hosts: 4, rate_bps: 8e9, bytes: 1,
  lanes: 16, lanes_usable: 16, failovers: 0, repaths: 0, parted: 0, stalled_ns: 0, owd_ns_p50: 4_000, worst: flow(0, 4_000, 9_000), ...change,
});
const detail = (of: Job, rates: (number | null)[], p99: (number | null)[]): JobDetail => ({ ...of, past: { from_utc_ns: 1_000_000_000, step_ns: 10e9, rate_bps: rates, owd_ns_p50: p99, owd_ns_p99: p99 }, flows: [], process_list: [] });

// The same name twice: whoever runs "train" each night compares it with itself.
const tonight = job("train", 1000, { rate_bps: 4e9, failovers: 3, worst: flow(2, 94_000, 120_000) });
const before = job("train", 1001, { state: "ended", rate_bps: 8e9 });
const fleet = {
  "jobs": { items: [tonight, before, job("other", 1000, {})], next: null },
  "jobs/train?user=1000": detail(tonight, [null, 4e9, 4e9, 4e9], [null, 9e4, 12e4, 12e4]),
  "jobs/train?user=1001": detail(before, [8e9, 8e9, 8e9], [9e3, 9e3, 9e3]),
  "events": { items: [], next: null },
};

test("two runs are laid over each other, and their figures side by side, of the same name too", async (t) => {
  const page = open(t, Jobs, "#/jobs/train?user=1000", fleet);
  await page.until("Beside");
  await page.until("train of user 1001");
  page.choose("train of user 1001");
  await page.until(() => drawn().filter((d) => d.title.includes("own beginning")).length === 2);
  assert.deepEqual(drawn().filter((d) => d.title.includes("own beginning")).map((d) => [d.labels, d.seconds, d.values]), [
    [["train of user 1000", "train of user 1001"], [0, 10, 20], [[4e9, 4e9, 4e9], [8e9, 8e9, 8e9]]],
    [["train of user 1000", "train of user 1001"], [0, 10, 20], [[9e4, 12e4, 12e4], [9e3, 9e3, 9e3]]],
  ]);
  const figures = Object.fromEntries(page.table("Two runs side by side").map(([what, ...values]) => [what, values]));
  assert.deepEqual(figures["Sends"], ["4 Gb/s", "8 Gb/s"]);
  assert.deepEqual(figures["Failovers"], ["3", "0"]);
  assert.deepEqual(figures["State"], ["running", "ended"]);
  assert.match(figures["Worst flow, p99"]![0]!, /^120 us .*lane 2$/);
});

test("a run to compare with that is no longer known is said to be so", async (t) => {
  const page = open(t, Jobs, "#/jobs/train?user=1000&beside=1002+gone", fleet);
  await page.until("no such thing");
});

test("what happened to a job is looked for from a little before its first report on", async (t) => {
  const page = open(t, Jobs, "#/jobs/train?user=1000", { ...fleet, "jobs/train?user=1000": { ...fleet["jobs/train?user=1000"], since_utc_ns: 100_000_000_000 } });
  await page.until("Nothing has happened to it");
  assert.ok(page.asked.includes("events?kind=job&limit=1000&since_utc_ns=40000000000"));
});

test("what happened to a job is not called nothing when only others' events were looked at", async (t) => {
  const page = open(t, Jobs, "#/jobs/train?user=1000", { ...fleet, "events": { items: [], next: "17" } });
  await page.until("Only the newest 1000 events");
  assert.ok(!page.text().includes("Nothing has happened to it"));
});

const saved = { month: "2026-11", job: "train", user: 1000, ranks: 8, faults: 40, restarts_avoided: 12, gpu_hours_saved: 240, gpu_hours_lost: 0.5, evidence: [100, 200, 300] };
const event = (id: number) => ({ id, at_utc_ns: id * 1_000_000_000, host: "h0", word: "failover", detail: { job: "train", user: 1000, text: `lane ${id} failed` } });

test("each restart avoided opens its own evidence; what isn't kept any more, or wasn't listed, is said", async (t) => {
  const page = open(t, Savings, "#/savings", {
    "savings": { items: [saved, { ...saved, job: "calm", faults: 0, restarts_avoided: 0, gpu_hours_saved: 0, gpu_hours_lost: 0, evidence: [] }], whole: true },
    // Whoever asks for "after 199" gets 200; 300 was expired, so something later comes.
    "events": (path: string) => ({ items: [event(path.includes("after=99&") ? 100 : path.includes("after=199&") ? 200 : 301)], next: null }),
  });
  await page.until("Restarts avoided");
  const rows = page.table("By job and month");
  assert.deepEqual(rows.map((r) => [r[1], r[4], r[5], r[6]]), [["train", "12", "240", "0.50"], ["calm", "0", "0", "0"]]);
  page.button("3 events").fire("click");
  await page.until("lane 100 failed");
  await page.until("lane 200 failed");
  await page.until("event 300 is no longer kept");
  assert.ok(page.text().includes("the first 3 of 12"));
  assert.ok(!page.text().includes("301"));
  const [link] = Object.entries(page.links()).filter(([text]) => text.startsWith("1970"));
  assert.equal(link![1], "#/jobs/train?range=1h&at=100000000000&user=1000".replace("range=1h&", ""));
});

test("what a restart costs is the reader's to say, and asked again", async (t) => {
  const page = open(t, Savings, "#/savings", { "savings": { items: [saved], whole: false }, "events": { items: [], next: null } });
  await page.until("too many events");
  const input = page.root.all("input")[0]!;
  input.value = "60";
  input.fire("change");
  await page.until(() => page.asked.at(-1) === "savings?restart_minutes=60");
});

test("a throughput begins at 0; a median of microseconds can be read beside a p99 of a second", () => {
  assert.deepEqual(reach("zero", 9e9, 10e9), [0, 10.5e9]);
  assert.deepEqual(reach("zero", 0, 0), [0, 1]);
  assert.deepEqual(reach("ratio", 42_000, 1.2e9), [1e4, 1e10]);
  assert.deepEqual(reach("ratio", 1000, 1000), [1e3, 1e4]);
  assert.deepEqual([reach("ratio", null, null), reach("zero", null, null)], [[1, 10], [0, 1]]);
});
