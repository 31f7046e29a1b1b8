import assert from "node:assert/strict";
import { test } from "node:test";
import { changes, named, settingsOf, withPeople } from "../../src/changes.ts";
import type { ConfigVersion, Element, Fabric, Incident, LiveRow, Port } from "../../src/model.ts";
import { litOf, room } from "../../src/ui/small_fabric.tsx";
import { Fleet } from "../../src/views/fleet.tsx";
import { open } from "./page.ts";

let next = 1;
const row = (seconds: number, kind: string, word: string, host: string | null, detail: object | null = null): LiveRow => ({ id: next++, host, at_utc_ns: 1_795_000_000_000_000_000n + BigInt(Math.round(seconds * 1e9)), kind, word, detail: detail as LiveRow["detail"] });

test("the same word of many hosts within seconds is one change that names them; later, or another word, it is another", () => {
  const rows = [row(30, "host", "silent", "h3"), row(12, "host", "joined", "h10"), row(11, "host", "joined", "h2"), row(10, "host", "agent-started", "h2"), row(9, "host", "joined", "h1"), row(1, "host", "joined", "h0")];
  assert.deepEqual(changes(rows, false).map((c) => [c.hosts, c.text]), [
    [["h3"], "fell silent"], [["h1", "h2", "h10"], "joined the fleet"], [["h2"], "its agent started"], [["h0"], "joined the fleet"],
  ]);
});

test("what an incident tells is told once, and all of it to who asks", () => {
  const rows = [row(5, "incident", "opened", null, { incident: 7, severity: "page", cause: "spine1" }), row(4, "finding", "opened", "h0", { text: "h0 -> h1: black hole" }), row(4, "incident", "repeated", null, { incident: 7 })];
  assert.deepEqual(changes(rows, false).map((c) => c.text), ["incident 7 (page) opened: spine1"]);
  assert.equal(changes(rows, true).length, 3);
});

test("who changed the configuration, and why, stands beside it", () => {
  const [c] = changes([row(1, "controller", "config-tried", null, { version: 4, who: "ada", why: "a lower limit" })], false);
  assert.deepEqual([c!.text, c!.who], ["configuration, version 4, is on trial on some hosts: a lower limit", "ada"]);
});

test("what people did stands among what happened, with its author; nothing is told twice", async (t) => {
  const rows = [row(9, "host", "joined", "h0"), row(5, "controller", "config-applied", null, { version: 4, who: "ada", why: "" })];
  const did = (id: number, seconds: number, what: string, detail: string) => ({ id, at_utc_ns: 1_795_000_000_000_000_000n + BigInt(seconds * 1e9), who: "otto", what, detail, source: null });
  const people = [did(3, 7, "silence.make", "silence 1: host h0"), did(2, 5, "config.apply", "configuration 4"), did(1, -9_000, "token.make", "old")];
  const all = withPeople(changes(rows, false), people, 1_794_999_000_000_000_000n, 1_796_000_000_000_000_000n);
  assert.deepEqual(all.map((c) => [c.text, c.who]), [["joined the fleet", null], ["silence: make – silence 1: host h0", "otto"], ["configuration, version 4, was applied", "ada"]]);
  const version = (v: number, state: ConfigVersion["state"], settings: object) => ({ version: v, state, at_utc_ns: 1, who: "ada", why: null, ended_why: null, hosts: 1, settings, text: "" }) as ConfigVersion;
  const versions = [version(4, "active", { flap_limit: 9, mode: null }), version(3, "taken-back", { flap_limit: 1 }), version(2, "replaced", { flap_limit: 6, mode: "observe" })];
  assert.deepEqual([4, 2, 7].map((v) => settingsOf(versions, v)), ["flap_limit: 6 → 9, mode: observe → not set", "flap_limit: not set → 6, mode: not set → observe", ""]);
  const none = { items: [], next: null };
  const page = open(t, Fleet, "#/fleet?at=1795000000000000000", { "findings": none, "incidents": none, "hosts": none, "events": { items: [{ ...rows[1]!, at_utc_ns: 1_794_999_999_000_000_000 }, { ...rows[0]!, at_utc_ns: 1_794_999_998_000_000_000 }], next: null }, "config/versions": { items: versions, next: null } });
  await page.until("flap_limit: 6 → 9");
  const only = page.root.all("input").find((i) => i.parentNode?.textContent.includes("only what people changed"))!;
  (only as unknown as { checked: boolean }).checked = true;
  only.fire("change");
  await page.until(() => !page.text().includes("joined the fleet"));
  assert.equal(page.table("Changes, newest first").length, 1);
});

test("many hosts are counted", () => {
  assert.equal(named([]), "–");
  assert.equal(named(["a", "b"]), "a, b");
  assert.equal(named(Array.from({ length: 9 }, (_, i) => `h${i}`)), "h0, h1, h2, h3, h4, h5 and 3 more");
});

const trunk: Element = { kind: "trunk", direction: "out", name: "trunk leaf0 - spine1", places: [{ kind: "leaf", name: "leaf0" }, { kind: "spine", name: "spine1" }] };
const nic: Element = { kind: "nic", direction: "out", name: "h1/eth0", places: [{ kind: "nic", host: "h1", nic: 3, name: "eth0" }] };

const portOf = (number: number, host: string, leaf: string): Port => ({ nic: number, host, name: "eth0", rail: 0, leaf, switch: null, switch_port: null, first_switch: null, state: "up", since_utc_ns: null, speed_bps: null, carrier_down_count: null, flaps_hour: null, flaps_day: null, rx_bps: null, tx_bps: null, rx_errors: null, tx_errors: null, freshness: "live" });
const incidentOf = (element: Element, change: Partial<Incident> = {}): Incident => ({ incident: 1, element, state: "open", severity: "page", cause: element.name, text: "its evidence", since_utc_ns: 1, alerts: 3, alerts_total: 3, hosts: 2, acknowledged_by: null, silenced: false, ...change });

test("an element lights its own places: a NIC its number, not whoever has its name", () => {
  assert.deepEqual([...litOf([trunk])], [["leaf0 spine1", "out"], ["spine1 leaf0", "in"]]);
  assert.deepEqual([...litOf([nic])], [["nic 3", "out"]]);
  assert.deepEqual([...litOf([{ ...trunk, direction: null }, nic]).keys()], ["leaf0 spine1", "spine1 leaf0", "nic 3"]);
  assert.deepEqual([...litOf([{ kind: "router", direction: null, name: "router 10.0.0.7", places: [{ kind: "router", address: "10.0.0.7", name: "router 10.0.0.7" }] }]).keys()], ["router 10.0.0.7", "10.0.0.7"]);
});

test("a lit one is drawn, however many there are beside it", () => {
  const names = Array.from({ length: 40 }, (_, i) => `h${i}`);
  assert.deepEqual(room(names, (n) => n === "h39", 4), ["h0", "h1", "h2", "h39"]);
  assert.deepEqual(room(["b", "a"], () => false, 4), ["a", "b"]);
});

test("an incident stands in Fleet with its picture: one trunk is lit, or one host; what hosts found is folded below", async (t) => {
  const fabric: Fabric = { ways: 1, ways_known: 1, switches: [["leaf0", 0], ["leaf1", 0], ["spine0", 1], ["spine1", 1]].map(([name, tier]) => ({ name: name as string, tier: tier as number, ways: 1, declared: null })), trunks: [], trunks_more: 4 };
  const port = portOf;
  const none = { items: [], next: null };
  const show = async (element: Element, change: Partial<Incident> = {}) => {
    const page = open(t, Fleet, "#/fleet", {
      "incidents": { items: [incidentOf(element, change)], next: null }, "fabric": fabric, "links": { items: [port(1, "h0", "leaf0"), port(3, "h1", "leaf0"), port(5, "h2", "leaf1")], next: null },
      "events": none, "hosts": none, "findings": { items: [{ id: 9, host: "h0", open: true, since_utc_ns: 1, until_utc_ns: null, kind: "path-dead", detail: { text: "h0 -> h1: black hole" } }], next: null },
    });
    await page.until("evidence and history");
    await page.until("Findings of hosts: 1");
    await page.until(() => page.root.all("svg").length > 0);
    assert.equal(page.links()["evidence and history"], "#/alerts?incident=1");
    return page.root.all("svg")[0]!;
  };
  const lit = (svg: Awaited<ReturnType<typeof show>>, mark = "lit") => ["line", "circle", "rect"].map((name) => svg.all(name).filter((n) => n.getAttribute("class") === mark).length);
  const tips = (svg: Awaited<ReturnType<typeof show>>) => svg.all("path").map((p) => p.getAttribute("class"));
  const one = await show(trunk);
  assert.deepEqual([lit(one), tips(one)], [[1, 0, 0], ["lit in"]]); // the line is drawn from the spine: packets go the other way
  const host = await show(nic);
  assert.deepEqual([lit(host), tips(host)], [[1, 0, 1], ["lit out"]]); // the host, and the line from it
  assert.deepEqual(tips(await show({ ...trunk, direction: null })), []);
  const may = await show({ kind: "unknown", direction: null, name: null, places: [] }, { one_of: [trunk, nic] });
  assert.deepEqual([lit(may), lit(may, "lit may"), tips(may)], [[0, 0, 0], [2, 0, 1], ["lit may in", "lit may out"]]);
});

test("in a fleet of which a page has only a part the ill NIC is asked for, and its host and leaf are drawn", async (t) => {
  const fabric: Fabric = { ways: 1, ways_known: 1, switches: Array.from({ length: 64 }, (_, i) => ({ name: `leaf${i}`, tier: 0, ways: 1, declared: null })), trunks: [], trunks_more: 4 };
  const ill: Element = { ...nic, places: [{ kind: "nic", host: "h4999", nic: 9_998, name: "h4999/eth0" }] };
  const page = open(t, Fleet, "#/fleet", {
    "incidents": { items: [incidentOf(ill)], next: null }, "fabric": fabric, "events": { items: [], next: null }, "hosts": { items: [], next: null }, "findings": { items: [], next: null },
    "links?limit=1000": { items: Array.from({ length: 1_000 }, (_, i) => portOf(i, `h${Math.floor(i / 2)}`, `leaf${i % 8}`)), next: "1000" },
    "links?limit=1000&incident=any": { items: [...Array.from({ length: 80 }, (_, i) => portOf(8_000 + i, `h${4_000 + i}`, "leaf63")), portOf(9_998, "h4999", "leaf63")], next: null },
  });
  await page.until(() => page.root.all("rect").some((r) => r.getAttribute("class") === "lit"));
  const drawn = page.root.all("rect").filter((r) => r.getAttribute("class") === "lit").map((r) => r.all("title")[0]!.textContent);
  assert.deepEqual([drawn, page.root.all("circle").some((c) => c.textContent === "leaf63")], [["h4999"], true]);
});
