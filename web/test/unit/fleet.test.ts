import assert from "node:assert/strict";
import { test } from "node:test";
import type { Element, Host as HostRow, Incident, Nic, Port, Silence, Status } from "../../src/model.ts";
import { Alerts, phase } from "../../src/views/alerts.tsx";
import { Clock } from "../../src/views/clock.tsx";
import { Fleet } from "../../src/views/fleet.tsx";
import { Host } from "../../src/views/host.tsx";
import { hangsOn, Links } from "../../src/views/links.tsx";
import { open } from "./page.ts";

const status = (change: Partial<Status>): Status => ({
  controller_version: "0.1.0", started_utc_ns: 1, now_utc_ns: 2, hosts: 2, freshness: { live: 2, late: 0, stale: 0, never: 0 }, health: { ok: 2, warn: 0, bad: 0, unknown: 0 },
  ports: { up: 4, down: 0, gone: 0, unknown: 0 }, clocks: { synced: 2, holdover: 0, disrupted: 0, unknown: 0 }, clock_hard_ns_max: 900, clock_statistical_ns_max: 300,
  paths: { measured: 8, dead: 0, lossy: 0 }, watching: { nics: 4, nics_unwatched: 0, nics_unknown: 0, hosts_sensors_off: 0 }, findings_open: 0, certificates_ending: 0, store: { writable: true, file_bytes: 4096, commit_ns_last: 1, commit_ns_max: 2e6 },
  ingest: { reports: 1, gaps: 0, malformed: 0, refused: 0, limited: 0, samples_dropped: 0 }, ...change,
});
const incident = (change: Partial<Incident>): Incident => ({ incident: 1, state: "open", severity: "page", cause: "spine1", text: "spine1 is dead", since_utc_ns: 1, alerts: 3, alerts_total: 3, hosts: 2, acknowledged_by: null, silenced: false, ...change });
const host = (name: string): HostRow => ({
  name, index: 0, member: true, health: "ok", freshness: "live", heard_utc_ns: 1, nics: 2, nics_up: 2, sensors_off: [], paths: 4, paths_dead: 0, paths_lossy: 0, findings_open: 0,
  clock: { status: "SYNCED", why: null, hard_ns: 900, statistical_ns: 300, offset_ns: 0, rate_ppb: 0, timeline: "1", edges_live: 1, edges_chosen: 1 },
  agent: { version: "0.1.0", cpu_ppm: 1_000, memory_bytes: 1, late_ticks: 0, packets_bad: 0, reports_lost: 0 },
});
const none = { items: [], next: null };
const fleet = { "status": status({}), "findings": none, "events": none, "incidents": none, "hosts": { items: [host("h0"), host("h1")], next: null } };
const tiles = (page: ReturnType<typeof open>) => Object.fromEntries(page.root.all("span").filter((s) => s.getAttribute("class") === "label").map((s) => [s.textContent, s.nextSibling?.textContent]));

test("the fleet at a glance: incidents first, and those that somebody has seen apart", async (t) => {
  const page = open(t, Fleet, "#/fleet", { ...fleet, "incidents": { items: [incident({}), incident({ incident: 2, acknowledged_by: "ada" })], next: null } });
  await page.until("2 \\(1 seen or silenced\\)");
  await page.until("2 of 2");
  assert.match(tiles(page)["Reports missing"]!, /0/);
  assert.equal(page.links()["h1"], "#/hosts/h1");
});

test("a tenant's token, which isn't told of the controller's insides, still has its fleet", async (t) => {
  const page = open(t, Fleet, "#/fleet", { ...fleet, "status": status({ ingest: null, store: { writable: true, file_bytes: null, commit_ns_last: null, commit_ns_max: null } }) });
  await page.until("Hosts healthy");
  assert.equal("Reports missing" in tiles(page), false);
  assert.match(tiles(page)["Store"]!, /is written/);
});

test("clocks: who is out is counted and marked, as the API words it", async (t) => {
  const out = { ...host("h1"), clock: { ...host("h1").clock, status: "HOLDOVER" as const, why: "no neighbour is heard" } };
  const page = open(t, Clock, "#/clock", { "hosts": { items: [host("h0"), out], next: null } });
  await page.until("1 of 2 hosts are not synchronised");
  const marks = Object.fromEntries(page.root.all("tr").slice(1).map((row) => row.all("td")).map((cells) => [cells[0]!.textContent, cells[1]!.textContent]));
  assert.deepEqual(marks, { h0: "● synced", h1: "▲ holdover" });
  page.answers["hosts"] = { items: [host("h0"), host("h1")], next: null };
  const well = open(t, Clock, "#/clock", page.answers);
  await well.until("All 2 hosts are synchronised");
});

test("what nobody watches is counted, opened and named; what isn't known is not none", async (t) => {
  const watching = (change: Partial<Status["watching"]>) => ({ ...fleet, "status": status({ watching: { ...status({}).watching, ...change } }) });
  const none = open(t, Fleet, "#/fleet", fleet);
  await none.until("NICs unwatched");
  assert.deepEqual([tiles(none)["NICs unwatched"], tiles(none)["Hosts with sensors off"]], ["0 of 4", "0 of 2"]);
  const well = open(t, Fleet, "#/fleet?unwatched=nics", { ...fleet, "nics": { items: [], next: null } });
  await well.until("Every NIC is watched");
  const nic: Nic = { nic: 3, host: "h1", name: "nic1", rail: 1, leaf: null, state: "up", freshness: "live", trouble: "no such interface", watched: false };
  const some = open(t, Fleet, "#/fleet?unwatched=nics", { ...watching({ nics_unwatched: 2, nics_unknown: 1 }), "nics?unwatched=true&limit=1000": { items: [nic, { ...nic, nic: 2, name: "nic0", state: "unknown", trouble: null }], next: null } });
  await some.until("no such interface");
  assert.equal(tiles(some)["NICs unwatched"], "2 of 4 (1 unknown)");
  assert.deepEqual(some.table("NICs that are not watched"), [["h1/nic1", "● up", "no such interface"], ["h1/nic0", "○ unknown", "its link can't be read"]]);
  assert.match(some.text(), /No current state of 1 NIC:/);
  assert.ok(!some.text().includes("Every NIC is watched"));
  const stale = open(t, Fleet, "#/fleet?unwatched=nics", { ...watching({ nics_unknown: 4 }), "nics": { items: [], next: null } });
  await stale.until("No current state of 4 NICs:");
  await stale.until("No NIC of a host that reports is unwatched");
  assert.ok(!stale.text().includes("Every NIC is watched"));
  const off = open(t, Fleet, "#/fleet?unwatched=sensors", { ...watching({ hosts_sensors_off: 1 }), "hosts?sensors_off=true&limit=1000": { items: [{ ...host("h7"), sensors_off: ["link state can't be read", "routers can't be heard"] }], next: null } });
  await off.until("routers can't be heard");
  assert.deepEqual(off.table("Hosts that can't watch all")[0]!.slice(0, 2), ["h7", "link state can't be read; routers can't be heard"]);
});

test("a list that is cut says so", async (t) => {
  const row = { id: 1, host: "h0", at_utc_ns: 1, kind: "link", word: "down", detail: { text: "h0/nic0 went down" } };
  const page = open(t, Fleet, "#/fleet", { ...fleet, "events": { items: [row], next: "1" } });
  await page.until("The newest 1 events of this range; there are more.");
});

test("where incidents can't be asked for, none is not what is shown", async (t) => {
  const page = open(t, Fleet, "#/fleet", { ...fleet, "incidents": undefined });
  await page.until("Incidents open");
  await page.until("Nothing is found wrong");
  assert.match(tiles(page)["Incidents open"]!, /–/);
});

test("nothing found is not nothing wrong: what is down or dead is counted, and leads there", async (t) => {
  const page = open(t, Fleet, "#/fleet", { ...fleet, "status": status({ ports: { up: 3, down: 1, gone: 0, unknown: 0 }, paths: { measured: 8, dead: 3, lossy: 0 } }) });
  await page.until("No host has named a fault, but 1 link is down and 3 paths are dead");
  assert.equal(page.links()["1 link is down"], "#/links?state=down");
  assert.ok(!page.text().includes("Nothing is found wrong"));
});

test("hosts that are ill come first, and each has a page: its state, NICs, findings and what happened to it", async (t) => {
  const ill = { ...host("h10"), health: "bad" as const, nics_up: 1, paths_dead: 2 };
  const page = open(t, Fleet, "#/fleet", { ...fleet, "hosts": { items: [host("h2"), host("h1"), ill, { ...host("h9"), health: "warn" }], next: null } });
  await page.until("h10");
  assert.deepEqual(page.table("Hosts").map((r) => r[0]), ["h10", "h9", "h1", "h2"]);
  const port = (name: string, state: Port["state"]): Port => ({ nic: name === "nic0" ? 0 : 1, host: "h10", name, rail: 0, leaf: "leaf4", switch: null, switch_port: null, first_switch: null, state, since_utc_ns: null, speed_bps: 4e11, carrier_down_count: 1,
    flaps_hour: 0, flaps_day: 0, rx_bps: null, tx_bps: null, rx_errors: 0, tx_errors: 0, freshness: "live" });
  const event = { id: 4, host: "h10", at_utc_ns: 1, kind: "link", word: "down", detail: { text: "h10/nic1: link is down" } };
  const one = open(t, Host, "#/hosts/h10", { "hosts/h10": { ...ill, links: [port("nic0", "up"), port("nic1", "down")] }, "findings": none, "events": { items: [event], next: null },
    "audit/hosts/h10/gate": { host: "h10", status: "fail", reason: null, text: "cfg.pcie.width fails: 8 lanes", run: "1", age_s: 3 } });
  await one.until("h10/nic1: link is down");
  await one.until("cfg.pcie.width fails");
  assert.deepEqual([tiles(one)["NICs up"], tiles(one)["May take a job (audit)"]], ["1 of 2", "fail"]);
  assert.deepEqual(one.table("Its NICs").map((r) => [r[0], r[1], r.at(-1)]), [["nic0", "● up", "leaf4"], ["nic1", "■ down", "leaf4"]]);
  assert.ok(one.asked.some((path) => path.startsWith("events?") && path.includes("host=h10")));
});

test("links are asked for by host and state, and say where their cables end", async (t) => {
  const port = (change: Partial<Port>): Port => ({
    nic: 1, host: "h1", name: "nic0", rail: 0, leaf: null, switch: null, switch_port: null, first_switch: null, state: "down", since_utc_ns: null, speed_bps: null, carrier_down_count: null,
    flaps_hour: null, flaps_day: null, rx_bps: null, tx_bps: null, rx_errors: null, tx_errors: null, freshness: "live", ...change,
  });
  assert.deepEqual([port({}), port({ leaf: "leaf1", switch: "leaf1", switch_port: "Ethernet4" }), port({ leaf: "rack7", switch: "tor7", switch_port: "4" }), port({ first_switch: "leaf0" })].map(hangsOn),
    ["–", "leaf1 · Ethernet4", "rack7 · tor7 4", "leaf0"]);
  const page = open(t, Links, "#/links?host=h1&state=down", { "links?limit=200&cursor=0&sort=state&order=desc&host=h1&state=down": { items: [port({})], next: null }, "links": { items: [port({}), port({ nic: 2, name: "nic1" })], next: null } });
  await page.until("h1/nic0");
  assert.ok(!page.text().includes("h1/nic1"));
  page.button("Of all hosts").fire("click");
  page.choose("all");
  await page.until("h1/nic1");
});

test("a NIC that an incident accuses is marked beside its carrier; the tile that counts it leads to it, and the server looks for it and sorts", async (t) => {
  const port = (change: Partial<Port>): Port => ({
    nic: 1, host: "h1", name: "nic0", rail: 0, leaf: null, switch: null, switch_port: null, first_switch: null, state: "up", since_utc_ns: null, speed_bps: null, carrier_down_count: null,
    flaps_hour: null, flaps_day: null, rx_bps: null, tx_bps: null, rx_errors: null, tx_errors: null, freshness: "live", ...change,
  });
  const nic: Element = { kind: "nic", direction: "out", name: "h1/nic0", places: [{ kind: "nic", host: "h1", nic: 1, name: "h1/nic0" }] };
  const one = open(t, Fleet, "#/fleet", { ...fleet, "incidents": { items: [incident({ element: nic }), incident({ incident: 2, element: { ...nic, kind: "unknown" }, one_of: [nic, { ...nic, kind: "clock" }] })], next: null } });
  await one.until("NICs and hosts accused");
  assert.match(tiles(one)["NICs and hosts accused"]!, /1$/);
  assert.ok(one.root.all("a").some((a) => String((a as unknown as { href?: string }).href ?? a.getAttribute("href")) === "#/links?incident=accused"));
  const ill = [port({ incident: { incident: 7, kind: "nic", direction: "out", one_of: 1 } }), port({ nic: 2, name: "nic1", incident: { incident: 8, kind: "nic", direction: null, one_of: 3 } }), port({ nic: 3, host: "h2", incident: { incident: 9, kind: "host", direction: "in", one_of: 1 } })];
  const page = open(t, Links, "#/links?incident=accused", { "links?limit=200&cursor=0&sort=state&order=desc&incident=accused": { items: ill, next: null }, "links?limit=200&cursor=0&sort=incident&order=desc": { items: [...ill, port({ nic: 4, name: "nic9" })], next: null }, "links": none });
  await page.until("h2/nic0");
  assert.deepEqual(page.table("Ports of the fleet's NICs").map((r) => r.slice(1, 3)), [["● up", "■ suspected: what it sends"], ["● up", "▲ one of 3 that may be it"], ["● up", "■ its host is suspected: what it receives"]]);
  assert.equal(page.links()["■ suspected: what it sends"], "#/alerts?incident=7");
  page.button("Incident").fire("click");
  const box = page.root.all("input").find((i) => i.getAttribute("type") === "checkbox" || (i as unknown as { type?: string }).type === "checkbox")!;
  Object.assign(box, { checked: false });
  box.fire("change");
  await page.until("h1/nic9");
  assert.deepEqual(page.table("Ports of the fleet's NICs").at(-1)!.slice(1, 3), ["● up", "–"]);
});

test("a window that comes again is over between two of them only", () => {
  const nightly: Silence = { id: 1, maintenance: true, from_utc_ns: 100, until_utc_ns: 110, every_ns: 50, rule: "x", host: null, element: null, by: null, why: null };
  assert.deepEqual([99n, 100n, 110n, 155n, 160n].map((now) => phase(nightly, now)), ["later", "now", "between windows", "now", "between windows"]);
  assert.deepEqual([99n, 109n, 110n].map((now) => phase({ ...nightly, every_ns: null }, now)), ["later", "now", "over"]);
});

test("what is silenced is shown with who, why and until when; a tenant isn't asked to read a refusal", async (t) => {
  const silence = { id: 3, maintenance: true, from_utc_ns: 0, until_utc_ns: 4_000_000_000_000_000_000, every_ns: null, rule: null, host: "h1", element: null, by: "ada", why: "new cables" };
  const page = open(t, Alerts, "#/alerts", { "incidents": none, "silences": { items: [silence], next: null } });
  await page.until("new cables");
  assert.deepEqual(page.table("Silences, and their ends")[0]!.slice(0, 2), ["host h1", "▲ maintenance"]);
  const other = open(t, Alerts, "#/alerts", { "incidents": none });
  await other.until("No incident, open or recent.");
  await other.until(() => other.asked.includes("silences") && !other.text().includes("Silences"));
});

test("whoever presses acknowledge is told, and the page asks again; a refusal is told, too", async (t) => {
  const said: [string, unknown][] = [];
  let seen: string | null = null;
  let failing = true;
  const page = open(t, Alerts, "#/alerts", {
    "incidents": () => ({ items: [incident({ acknowledged_by: seen }), incident({ incident: 2, state: "resolved" })], next: null }), "silences": none,
    "POST incidents/1": (path: string, body: string) => {
      said.push([path, JSON.parse(body)]);
      seen = failing ? null : "ada";
      return failing ? undefined : {};
    },
  });
  await page.until("spine1 is dead");
  assert.equal(page.root.all("button").filter((b) => b.textContent === "Acknowledge").length, 1); // what is over is nobody's any more
  page.button("Acknowledge").fire("click");
  await page.until("no such thing");
  failing = false;
  page.button("Acknowledge").fire("click");
  await page.until("Incident 1 is yours.");
  await page.until("acknowledged by ada");
  assert.deepEqual(said, Array(2).fill(["incidents/1", { acknowledge: true }]));
  await page.until(() => page.button("Acknowledge") === undefined);
});
