import assert from "node:assert/strict";
import { test } from "node:test";
import type { Port } from "../../src/model.ts";
import { Alerts } from "../../src/views/alerts.tsx";
import { Links } from "../../src/views/links.tsx";
import { Settings, value } from "../../src/views/settings.tsx";
import { open } from "./page.ts";

const version = { version: 3, state: "active", at_utc_ns: 1, ended_utc_ns: null, who: "ada", why: "calmer", ended_why: null, hosts: 8, settings: {}, text: "flap_limit: 6\n" };
const config = { active: version, trial: null, observe: false, observe_since_utc_ns: null, observe_by: null, rolled_back: false, hosts_behind: 0, hosts_observing: 0, hosts_refusing: 0 };
const tokens = { items: [{ id: 1, name: "grafana", role: "viewer", scope: null, created_utc_ns: 1, expires_utc_ns: null, used_utc_ns: null, uses_left: null }], next: null };
const audit = { items: [{ id: 5, at_utc_ns: 1, who: "ada", what: "config.apply", detail: "version 3", source: "local" }], next: null };
const answers = { "config": config, "config/versions": { items: [version], next: null }, "tokens": tokens, "audit": audit };

test("settings: what is in force and why, each token, who changed what", async (t) => {
  const page = open(t, Settings, "#/settings", { ...answers });
  await page.until(/Version 3 is in force .* by ada: calmer/);
  await page.until("config.apply");
  assert.deepEqual(page.table("Tokens, and their rights")[0]!.slice(0, 3), ["grafana", "viewer", "all"]);
  assert.equal(page.table("Changes by people and programs, newest first")[0]![1], "ada");
});

test("a configuration is applied only after its diff was seen, and the diff is of what stands there", async (t) => {
  const page = open(t, Settings, "#/settings", { ...answers });
  await page.until("Show what changes");
  const apply = () => page.button(/^Apply$/);
  const isOff = () => (apply() as unknown as { disabled?: boolean }).disabled === true;
  assert.ok(isOff());
  const area = page.root.all("textarea")[0]!;
  area.value = "flap_limit: 9\n";
  area.fire("input");
  await new Promise((done) => setTimeout(done, 20)); // until it is drawn
  page.answers["config"] = (path: string) => (path === "config" ? { ...config, changes: [{ key: "flap_limit", from: 6, to: 9 }] } : undefined);
  page.button("Show what changes").fire("click");
  await page.until("What would change");
  assert.deepEqual(page.table("What would change"), [["flap_limit", "6", "9"]]);
  assert.ok(!isOff());
  area.value = "flap_limit: 10\n";
  area.fire("input");
  await page.until(isOff);
});

test("revoking asks twice", async (t) => {
  const page = open(t, Settings, "#/settings", { ...answers });
  await page.until("Revoke grafana");
  page.button("Revoke grafana").fire("click");
  await page.until("Revoke grafana: yes");
  assert.ok(!page.asked.includes("tokens/1"));
  page.button("Revoke grafana: yes").fire("click");
  await page.until(() => page.asked.includes("tokens/1"));
});

test("what isn't set is told as that", () => {
  assert.deepEqual([value(null), value("1s"), value(6), value({ a: 1 })], ["not set", "1s", "6", '{"a":1}']);
});

test("nothing is silenced without a pattern; one can be ended", async (t) => {
  const silence = { id: 4, maintenance: false, from_utc_ns: 1, until_utc_ns: 9_000_000_000_000_000_000n.toString(), every_ns: null, rule: null, host: "h1", element: null, by: "ada", why: null };
  const page = open(t, Alerts, "#/alerts", { "incidents": { items: [], next: null }, "silences": { items: [{ ...silence, until_utc_ns: 9e18 }], next: null } });
  await page.until("Silence something");
  assert.equal((page.button(/^Silence$/) as unknown as { disabled?: boolean }).disabled, true);
  await page.until("End silence");
  page.button("End silence").fire("click");
  await page.until(() => page.asked.includes("silences/4"));
});

test("links are looked for, sorted and cut by the server", async (t) => {
  const port = (nic: number, host: string, change: Partial<Port>): Port => ({ nic, host, name: "ib0", rail: 0, leaf: "leaf2", switch: null, switch_port: null, first_switch: null, state: "up", since_utc_ns: null, speed_bps: null, carrier_down_count: null, flaps_hour: null, flaps_day: null, rx_bps: null, tx_bps: null, rx_errors: null, tx_errors: null, freshness: "live", ...change });
  const worst = "links?limit=200&cursor=0&sort=state&order=desc";
  const page = open(t, Links, "#/links", {
    [worst]: { items: [port(3, "gpu-2", { state: "down" }), port(1, "gpu-1", {})], next: "2" },
    "links?limit=200&cursor=200&sort=state&order=desc": { items: [port(9, "gpu-9", {})], next: null },
    "links?limit=200&cursor=0&sort=flaps_day&order=desc": { items: [port(4, "gpu-4", { flaps_day: 7 })], next: null },
    "links?limit=200&cursor=0&sort=flaps_day&order=desc&q=tor7%20down": { items: [port(2, "gpu-12", { switch: "tor7" })], next: null },
  });
  const rows = () => page.table("Ports of the fleet's NICs").map((cells) => cells[0]);
  await page.until("gpu-2/ib0");
  assert.deepEqual(rows(), ["gpu-2/ib0", "gpu-1/ib0"]); // as they came
  page.button("Next").fire("click");
  await page.until("gpu-9/ib0");
  page.button(/^day/).fire("click"); // begins with the first page again
  await page.until("gpu-4/ib0");
  const box = page.root.all("input").find((i) => i.getAttribute("placeholder")?.startsWith("host"))!;
  box.value = "tor7 down ";
  box.fire("input");
  await page.until("gpu-12/ib0");
});
