import assert from "node:assert/strict";
import { test } from "node:test";
import { Audit, progress, together } from "../../src/views/audit.tsx";
import { open } from "./page.ts";

const counts = (fail: number, unknown: number, pass: number) => ({ fail, unknown, warn: 0, pass, skip: 0 });
const run = { run: "77", state: "done", who: "ada", why: null, started_utc_ns: 2_000_000_000, ended_utc_ns: 3_000_000_000, hosts: 8, unanswered: 1, look: 1, matrix: false,
  not_read: [{ host: "h7", reason: "silent", note: "no word for 3 min" }], counts: counts(1, 1, 6),
  checks: [{ check: "cfg.pcie.width", group: "configuration", part: "PCIe", counts: counts(1, 1, 6) }, { check: "cfg.pcie.speed", group: "configuration", part: "PCIe", counts: counts(0, 1, 7) }, { check: "node.agent", group: "node", part: "node", counts: counts(0, 1, 7) }] };
const result = { check: "cfg.pcie.width", host: "h3", subject: "0000:fc:00.0", interface: null, status: "fail", reason: null, severity: "block", suspect: false, seen_once: false, overridden: false, found: "x8", expected: "x16",
  basis: "", peer: null, note: "", cohort: 0, evidence: [{ fact: "pci.width", subject: "0000:fc:00.0", state: "value", value: "8", source: "/sys/bus/pci/devices" }], remedy: "Reseat the card." };
const none = { items: [], next: null };
const answers = {
  "audit/cost": { hosts: 8, nics: 64, lead_ns: 7e9, matrix: { ns: 6.3e9, packets: 315 }, bandwidth: null, nccl: { pairs_ns: 31.5e9, fabric_ns: 20.1e9, rings_ns: 40.1e9, round_ns: 12e9 } }, "audit/runs": { items: [run], next: null }, "audit/runs/77": run, "audit/runs/77/nodes": none, "audit/baselines": none,
  "audit/runs/77/results?limit=200&status=fail": { items: [result], next: null }, "audit/runs/77/results?limit=200&check=cfg.pcie.width": { items: [result, { ...result, host: "h4", status: "unknown" }], next: null },
  "audit/checks": { items: [{ check: "cfg.pcie.width", title: "each link has the lanes that both ends have", why: "A NIC at half its width moves half.", severity: "block" }], next: null },
};

test("an audit says who fails and why, what to do, and what nobody looked at", async (t) => {
  const page = open(t, Audit, "#/audit", answers);
  await page.until("A NIC at half its width moves half.");
  await page.until("Not read: 1 of 8 hosts");
  await page.until("h7: no word for 3 min \\(silent\\)");
  const [row] = page.table("Results: fail");
  assert.match(row!.join(" | "), /^h30000:fc:00\.0 \| each link .*cfg\.pcie\.width \| ■ failtakes no job \| x8 \| x16 \| A NIC .*Reseat the card\. \| 1 facts/);
  assert.ok(page.text().includes("pci.width 0000:fc:00.0: 8"));
  assert.ok(page.text().includes("No audit was accepted yet"));
});

test("one that was stopped says how far it came, and can't be accepted", async (t) => {
  const covered = { sheets: { done: 7, of: 8 }, cells: { done: 120, of: 240 }, tests: null };
  const stopped = { ...run, state: "stopped", why: "ada stopped it", matrix: true, covered };
  const page = open(t, Audit, "#/audit", { ...answers, "audit/runs": { items: [stopped], next: null }, "audit/runs/77": stopped });
  await page.until("stopped: ada stopped it; 7 of 8 sheets; 120 of 240 cells");
  assert.ok(!page.text().includes("Accept this audit"));
  await page.until(() => page.asked.includes("audit/runs/77/matrix") && !page.text().includes("Every NIC with every NIC")); // it has none to show
});

test("the tree opens from group to check to what was found", async (t) => {
  const page = open(t, Audit, "#/audit/77?part=configuration%2FPCIe", answers);
  await page.until("Checks of configuration/PCIe");
  assert.deepEqual(page.table("Checks of hosts, by what they are about").map((r) => r.slice(0, 4)), [["configuration", "PCIe", "■ 1", "▲ 2"], ["node", "node", "·", "▲ 1"]]);
  assert.deepEqual(page.table("Checks of configuration/PCIe").map((r) => r[0]), ["cfg.pcie.width", "cfg.pcie.speed"]);
  const one = open(t, Audit, page.links()["cfg.pcie.width"]!, answers);
  await one.until("Results: all that is not well of cfg.pcie.width");
  await one.until("h4");
});

test("what changed since an accepted audit is told; one is accepted in the page", async (t) => {
  const page = open(t, Audit, "#/audit", { ...answers });
  await page.until("Accept this audit");
  const accepted = { run: "55", name: "as delivered", who: "ada", accepted_utc_ns: 2, started_utc_ns: 1, hosts: 8, measured: 3 };
  page.answers["audit/baselines"] = { items: [accepted], next: null };
  page.answers["audit/runs/77/diff?with=baseline"] = { hosts: 8, cut: false, facts: [{ host: "h3", fact: "pci.width", subject: "0000:fc:00.0", was: "16", is: "8" }], results: [{ host: "h3", check: "cfg.pcie.width", was: "pass", is: "fail" }] };
  page.button("Accept this audit").fire("click");
  await page.until("was accepted by ada: as delivered");
  await page.until("The measurements of 3 of 8 hosts are kept.");
  await page.until("Changes of 8 hosts that are in both");
  assert.deepEqual(page.table("Changes of 8 hosts that are in both"), [["h3", "pci.width 0000:fc:00.0 fact", "16", "8"], ["h3", "cfg.pcie.width ", "pass", "fail"]]);
});

test("a host that nobody looked at this time is one line among the changes", () => {
  const gone = ["a", "b", "c", "d", "e"].map((check) => ({ host: "h7", check, was: check === "e" ? "skip" : "pass", is: "unknown" }));
  assert.deepEqual(together([...gone, { host: "h3", check: "w", was: "pass", is: "fail" }, { host: "h3", check: "x", was: "pass", is: "fail" }]).map((r) => [r.host, r.what, r.was, r.is]),
    [["h7", "5 checks: a, b, …", "pass, skip", "unknown"], ["h3", "w", "pass", "fail"], ["h3", "x", "pass", "fail"]]);
});

test("what an audit costs is told before it is started, as the controller has it", async (t) => {
  const page = open(t, Audit, "#/audit", answers);
  await page.until("8 hosts read their own files");
  assert.ok(!page.text().includes("each sends 315"));
  const [matrix, nccl] = page.root.all("input");
  matrix!.fire("change");
  await page.until("64 NICs: 6.30? s, and each sends 315 small packets");
  nccl!.fire("change");
  await page.until("at most 31.50? s for pairs of hosts, 20.10? s for the fabric, 40.10? s for all together, 12 s for each round of a search; 7 s between these");
});

test("how far an audit is: by time where its end is known", () => {
  const at = (r: object) => Object.values(progress({ ...run, ...r } as unknown as Parameters<typeof progress>[0]));
  assert.deepEqual(at({ state: "measuring", left_ns: 2e9, stage_ns: 8e9 }), [6e9, 8e9, "all pairs of NICs are measured; 2 s left"]);
  assert.deepEqual(at({ state: "measuring", left_ns: 9e9, stage_ns: 8e9 }).slice(0, 2), [0, 8e9]); // it has not begun
  assert.deepEqual(at({ state: "testing", left_ns: 0, stage_ns: 8e9, tests_done: 3, tests_planned: 5 }), [8e9, 8e9, "3 of 5 results of tests have arrived; 0 ns left of this part"]);
  assert.deepEqual(at({ state: "reading", left_ns: null, stage_ns: null }), [7, 8, "7 of 8 hosts have answered"]);
});

test("hosts come the worst first, as the server sends them; hosts that are not shown are counted", async (t) => {
  const host = (name: string, gate: string, now: boolean) => ({ host: name, status: "fail", agent: "live", nic: "pass", initialized: "pass", active: gate, gid_index: "pass", connectivity: "pass", connectivity_now: now, gate, gate_text: "", marks: "", at_utc_ns: null });
  const first = { items: [host("h9", "fail", false), host("h1", "pass", true)], next: "1000" };
  const page = open(t, Audit, "#/audit", { ...answers, "audit/runs": { items: [{ ...run, hosts: 1_500 }], next: null }, "audit/runs/77": { ...run, hosts: 1_500 }, "audit/runs/77/nodes": first });
  await page.until("The first 2 of 1500 hosts are shown, the worst first; foliot audit nodes 77 has all");
  assert.deepEqual(page.table("Hosts of this audit").map((r) => [r[0], r[7], r[8]]), [["h9", "● pass", "■ fail"], ["h1", "● pass now", "● pass"]]);
  page.answers["audit/runs/77/nodes"] = { ...first, next: null };
  const whole = open(t, Audit, "#/audit", page.answers);
  await whole.until("Hosts of this audit");
  await whole.until("h9");
  assert.ok(!whole.text().includes("hosts are shown"));
});
