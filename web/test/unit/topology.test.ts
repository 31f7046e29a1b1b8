import assert from "node:assert/strict";
import { test } from "node:test";
import type { Element, Fabric, Incident, Port, Trunk } from "../../src/model.ts";
import { suspectsOf } from "../../src/suspect.ts";
import { cables, ill, isWide, load, loadText, thickness } from "../../src/ui/fabric.tsx";
import { byLeaf, Topology } from "../../src/views/topology.tsx";
import { open } from "./page.ts";

const port = (nic: number, host: string, leaf: string | null, change: Partial<Port> = {}): Port => ({
  nic, host, name: "eth0", rail: 0, leaf, switch: null, switch_port: null, first_switch: null, state: "up", since_utc_ns: null, speed_bps: 10e9, carrier_down_count: null, flaps_hour: null, flaps_day: null,
  rx_bps: null, tx_bps: null, rx_errors: null, tx_errors: null, freshness: "live", ...change,
});
const trunk = (from: string, to: string, change: Partial<Trunk> = {}): Trunk => ({
  from, to, state: "good", gone_utc_ns: null, ways: 4, paths_alive: 4, paths_lossy: 0, paths_dead: 0, owd_ns_p50: 4_000, owd_ns_p99: 5_000, loss_ppm: 0, ...change,
});
const switches = [["leaf0", 0], ["leaf1", 0], ["spine0", 1], ["spine1", 1]].map(([name, tier]) => ({ name: name as string, tier: tier as number, ways: 8, declared: null }));
const incident = (change: Partial<Incident>): Incident => ({ incident: 7, state: "open", severity: "page", cause: "?", text: "?", since_utc_ns: 1, alerts: 1, alerts_total: 1, hosts: 1, acknowledged_by: null, silenced: false, ...change });
const box = (name: string): Element["places"][number] => ({ kind: name.startsWith("leaf") ? "leaf" : "spine", name });
const trunkOf = (a: string, b: string, direction: Element["direction"]): Element => ({ kind: "trunk", direction, name: `trunk ${a} - ${b}`, places: [box(a), box(b)] });
const spine = (name: string): Element => ({ kind: "spine", direction: null, name, places: [box(name)] });
const unknown: Element = { kind: "unknown", direction: null, name: null, places: [] };

test("hosts stand under their leaves, in the order that people count; without a leaf, where their packets or switches say", () => {
  const leaves = byLeaf([port(1, "h1", "leaf10"), port(2, "h2", "leaf2"), port(3, "h1", "leaf10"), port(4, "h3", null), port(5, "h4", null, { first_switch: "leaf2" }), port(6, "h5", null, { switch: "tor7" })]);
  assert.deepEqual(leaves.map((l) => [l.name, l.hosts.map((h) => h.ports.length)]), [["leaf not known", [1]], ["leaf2", [1, 1]], ["leaf10", [2]], ["tor7", [1]]]);
});

test("what incidents accuse: surer ones first; what may be it is one of several; what is no element of the fabric is not drawn", () => {
  const may = incident({ incident: 8, element: unknown, one_of: [spine("spine0"), spine("spine1")], others: true });
  const clock = incident({ element: { kind: "clock", direction: null, name: "clock of h0", places: [{ kind: "host", host: "h0", name: "h0" }] } });
  assert.deepEqual(suspectsOf([may, clock, incident({}), incident({ incident: 9, element: unknown }), incident({ element: spine("spine2"), one_of: [] })]).map((s) => [s.element.name, s.incident, s.oneOf, s.others]),
    [["spine2", 7, 1, false], ["spine0", 8, 2, true], ["spine1", 8, 2, true]]);
});

test("only the direction that is accused is marked, by either end's name or address", () => {
  const fabric: Fabric = { ways: 1, ways_known: 1, switches, trunks: [trunk("leaf0", "spine0"), trunk("spine0", "leaf0")], trunks_more: 0 };
  const of = (element: Element, more: Partial<Incident> = {}) => {
    const [cable] = cables(fabric, suspectsOf([incident({ element, ...more })]));
    return [ill(cable!), cable!.accused !== null && cable!.accused.up !== null, cable!.accused !== null && cable!.accused.down !== null];
  };
  assert.deepEqual(of(trunkOf("leaf0", "spine0", "out")), ["suspected up; good", true, false]);
  assert.deepEqual(of(trunkOf("spine0", "leaf0", "out")), ["suspected down; good", false, true]);
  assert.deepEqual(of(trunkOf("spine0", "leaf0", "in")), ["suspected up; good", true, false]);
  assert.deepEqual(of(trunkOf("leaf0", "spine0", "both")), ["suspected in both directions; good", true, true]);
  assert.deepEqual(of(trunkOf("leaf0", "spine0", null)), ["suspected; good", false, false]);
  assert.deepEqual(of(trunkOf("leaf0", "spine1", "out")), ["good", false, false]);
  const address: Element = { kind: "trunk", direction: "out", name: "?", places: [box("leaf0"), { kind: "router", address: "spine0", name: "router spine0" }] };
  assert.deepEqual(of(address), ["suspected up; good", true, false]);
  assert.deepEqual(of(unknown, { one_of: [trunkOf("leaf0", "spine0", "in"), spine("spine0"), spine("spine1")] }), ["may be it: one of 3, down; good", false, true]);
});

test("a cable is as bad as its worse direction", () => {
  const fabric: Fabric = { ways: 1, ways_known: 1, switches, trunks: [trunk("leaf0", "spine0"), trunk("spine0", "leaf0", { state: "dead" }), trunk("spine1", "leaf0")], trunks_more: 0 };
  assert.deepEqual(cables(fabric, []).map((c) => [c.low, c.high, c.state, c.up !== null, c.down !== null]), [["leaf0", "spine0", "dead", true, true], ["leaf0", "spine1", "good", false, true]]);
});

test("loads that somebody doesn't say are not 0", () => {
  assert.equal(loadText(load([port(1, "a", null)])), "load not known");
  assert.equal(loadText(load([port(1, "a", null, { tx_bps: 1e9, rx_bps: 0 }), port(2, "a", null, { tx_bps: 2e9, rx_bps: 0 })])), "in 3 Gb/s, out 0 b/s");
  assert.equal(loadText(load([port(1, "a", null, { tx_bps: 1e9, rx_bps: 2e9 }), port(2, "a", null)])), "≥ in 1 Gb/s, out 2 Gb/s");
  assert.ok(thickness(trunk("a", "b", { owd_ns_p99: 104_000 })) > thickness(trunk("a", "b")) && thickness(null) === 1);
});

const answers = (fabric: unknown): Record<string, unknown> => ({
  "links": { items: [port(0, "h0", "leaf0", { first_switch: "leaf0", tx_bps: 3e9, rx_bps: 1e9 }), port(1, "h1", "leaf1", { first_switch: "leaf1", state: "down" })], next: null },
  "incidents": { items: [incident({ element: trunkOf("leaf0", "spine1", "out") }), incident({ incident: 8, element: unknown, one_of: [trunkOf("spine0", "leaf0", "out"), spine("spine2")] })], next: null },
  "topology": { declared: null, differences: [] },
  ...(fabric === undefined ? {} : { "fabric": fabric }),
});

test("spines and trunks are drawn, the dead and the vanished marked, loads where somebody measures them", async (t) => {
  const trunks = [trunk("leaf0", "spine0"), trunk("spine0", "leaf0"), trunk("leaf0", "spine1", { state: "dead", paths_alive: 0, paths_dead: 4, owd_ns_p50: null, owd_ns_p99: null, loss_ppm: null }),
    trunk("leaf1", "spine1", { state: "gone", ways: 0, gone_utc_ns: 1_000_000_000, paths_alive: 0 })];
  const page = open(t, Topology, "#/topology", answers({ ways: 20, ways_known: 18, switches: [...switches, { name: "spine2", tier: 1, ways: 0, declared: "spine" }], trunks, trunks_more: 0 }));
  await page.until("2 of 3 trunks are not well");
  await page.until("all 1 links up");
  assert.match(page.text(), /All switches are known on 18 of 20 paths/);
  assert.match(page.text(), /The rate of a trunk is not measured/);
  assert.match(page.text(), /Suspected: trunk leaf0 - spine1 \(leaf0 → spine1\) · incident 7/);
  assert.match(page.text(), /One of: trunk spine0 - leaf0 \(spine0 → leaf0\), spine2 · incident 8/);
  assert.match(page.text(), /1 may be ill: an incident names several suspects/);
  assert.match(page.text(), /spine2may be it: one of 2/);
  assert.match(page.text(), /leaf0in 3 Gb\/s, out 1 Gb\/s/);
  const lines = page.root.all("g").filter((g) => g.getAttribute("class") === "trunk").map((g) => [...["class", "marker-start", "marker-end"].map((name) => g.all("line")[0]!.getAttribute(name)), g.all("title")[0]!.textContent]);
  assert.deepEqual(lines.map((line) => line.slice(0, 3)), [["maybe", "url(#maybe)", null], ["bad", null, "url(#tip)"], ["gone", null, null]]);
  assert.match(lines[1]![3]!, /^Suspected up. leaf0 → spine1: dead; probes –, p99 –. spine1 → leaf0: no known path uses it$/);
  const rows = page.table("Trunks, the worst first");
  assert.deepEqual(rows.map((r) => r.slice(0, 2).join(" ").replace(/ since .*/, "")),
    ["leaf0 – spine1 ■ suspected up; dead up (the only direction known)", "leaf1 – spine1 ▲ no path uses it any more", "leaf0 – spine0 ▲ may be it: one of 2, down; good"]);
  assert.deepEqual(rows[0]!.slice(6), ["–, –", "–, –", "–, –"]);
});

test("where hosts know no switches none is drawn as healthy, and the reason is said", async (t) => {
  const page = open(t, Topology, "#/topology", answers({ ways: 20, ways_known: 0, switches: [], trunks: [], trunks_more: 0 }));
  await page.until("the switches do not answer");
  assert.ok(!/trunks .*good/.test(page.text()));
});

test("one dead trunk is one line, whichever of its directions are dead", () => {
  const of = (up: Partial<Trunk>, down: Partial<Trunk>) => ill(cables({ ways: 1, ways_known: 1, switches, trunks: [trunk("leaf0", "spine0", up), trunk("spine0", "leaf0", down)], trunks_more: 0 }, [])[0]!);
  assert.deepEqual([of({}, {}), of({ state: "dead" }, { state: "dead" }), of({ state: "dead" }, {}), of({ state: "lossy" }, { state: "dead" })],
    ["good", "dead in both directions", "dead up", "loses packets up, dead down"]);
});

test("a fleet of more NICs than a page of the API has is drawn whole", async (t) => {
  const pages = { "links?limit=1000": { items: [port(0, "h0", "leaf0")], next: "1000" }, "links?limit=1000&cursor=1000": { items: [port(1, "h1", "leaf0")], next: null } };
  const page = open(t, Topology, "#/topology", { ...answers(undefined), ...pages });
  await page.until("2 hosts, all 2 links up");
  assert.ok(!page.text().includes("are drawn and counted"));
});

test("a controller of before draws leaves alone", async (t) => {
  const page = open(t, Topology, "#/topology", answers(undefined));
  await page.until("has no spines and trunks");
  await page.until("1 of 1 links down");
});

test("64 by 64 switches are a grid: one dead direction is one half cell, and its switches are named", async (t) => {
  const [leaves, spines] = [0, 1].map((tier) => Array.from({ length: 64 }, (_, i) => ({ name: `${tier === 0 ? "leaf" : "spine"}${i}`, tier, ways: 8, declared: null })));
  const trunks = leaves!.flatMap((l) => spines!.flatMap((s) => [trunk(l.name, s.name), trunk(s.name, l.name, l.name === "leaf37" && s.name === "spine11" ? { state: "dead" } : {})]));
  const fabric: Fabric = { ways: 9, ways_known: 9, switches: [...leaves!, ...spines!], trunks, trunks_more: 0 };
  assert.ok(isWide(fabric) && !isWide({ ...fabric, switches }));
  const page = open(t, Topology, "#/topology", { "links": { items: [], next: null }, "incidents": { items: [incident({ element: unknown, one_of: [trunkOf("leaf3", "spine4", "out"), spine("spine9")] })], next: null }, "fabric": fabric, "topology": { declared: null, differences: [] } });
  await page.until("1 of 4096 trunks is not well");
  const halves = page.root.all("path").map((p) => p.getAttribute("class")).filter((c) => c?.startsWith("half"));
  assert.deepEqual(halves.map((c) => c!.trim()).sort(), ["half", "half", "half dead", "half maybe"]);
  const names = page.root.all("text").map((n) => n.textContent);
  assert.ok(names.includes("leaf37") && names.includes("spine11"));
  assert.match(page.root.all("title").map((n) => n.textContent).join(), /spine11 → leaf37: dead/);
  assert.deepEqual(page.table("Trunks, the worst first")[0]!.slice(0, 2), ["leaf37 – spine11", "■ dead down"]); // one line
  assert.deepEqual(page.root.all("li").map((n) => n.textContent), ["One of: trunk leaf3 - spine4 (leaf3 → spine4), spine9 · incident 7", "leaf37 – spine11: dead down", "leaf3 – spine4: may be it: one of 2, up; good"]);
});
