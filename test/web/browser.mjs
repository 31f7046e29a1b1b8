// browser.mjs URL TOKEN NODE_MODULES: the dashboard in Debian's Chromium, headless (page.mjs).
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { accessible, args, check, chromium, executablePath, expect, finish, open, patience, show, signIn, token, url, views, visit, want } from "./page.mjs";

const page = await open({});
await check("a wrong token is told so, and nothing is shown", async () => {
  await visit(page, `${url}/`);
  await page.getByLabel("Token").fill("fla_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token is unknown to the controller").waitFor();
});
await check("a right token shows the fleet", async () => {
  await signIn(page);
  await page.getByRole("cell", { name: "h0", exact: true }).first().waitFor();
  expect(await page.getByText("Hosts healthy").isVisible(), "no tile of healthy hosts");
});
await check("a link with a code signs in once; its browser's history file has the spent code and no token", async () => {
  const made = await fetch(`${url}/api/v1/sign-in/codes`, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: "{}" });
  const { code } = await made.json();
  const folder = await mkdtemp(path.join(tmpdir(), "foliot-profile-"));
  const context = await chromium.launchPersistentContext(folder, { executablePath, args });
  const other = await context.newPage();
  other.setDefaultTimeout(patience);
  await other.goto(`${url}/#code=${code}`);
  await other.getByRole("heading", { name: "Fleet", exact: true }).waitFor();
  expect(!other.url().includes("code"), other.url());
  const again = await context.newPage();
  await again.goto(`${url}/#code=${code}`);
  await again.getByText("This link was used already").waitFor({ timeout: patience });
  await context.close(); // writes what it keeps
  const kept = await Promise.all((await readdir(path.join(folder, "Default"))).filter((name) => name.startsWith("History")).map((name) => readFile(path.join(folder, "Default", name), "latin1")));
  await rm(folder, { recursive: true });
  expect(kept.join().includes(code), "the address isn't in the history file: nothing was shown");
  expect(!kept.join().includes("fla_"), "a token is in the history file");
});
await check("it is live", async () => {
  await page.getByText(/● live/).waitFor();
});
for (const scheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme: scheme });
  for (const view of views) {
    await check(`${view} in ${scheme}: WCAG 2.1 AA by axe`, async () => {
      await show(page, view);
      await accessible(page);
    });
  }
}
await check("a clock's state is one that the page knows, however the controller words it", async () => {
  await show(page, "Clock");
  await page.getByRole("row", { name: /^h1 / }).getByText(/^(● synced|▲ holdover|■ disrupted|○ unknown)$/).waitFor();
});
await check("a cell of the mesh is read and opened by keys alone", async () => {
  await show(page, "Mesh");
  await page.locator("canvas[role=application]").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.getByText(/^h1\/nic0 → h0\/nic0: [0-9.]+ (ns|us|ms)$/).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "h1/nic0 → h0/nic0" }).waitFor();
  await page.getByText("alive").first().waitFor();
});
await check("the mesh as it was: looked up, read, and nothing where nobody had measured", async () => {
  await show(page, "Fleet");
  await show(page, "Mesh");
  const moment = page.getByRole("status").filter({ hasText: /The mesh as it was at/ });
  await page.getByRole("button", { name: "10 s earlier" }).click();
  await moment.waitFor();
  expect(/at=\d{19}/.test(page.url()), page.url());
  await page.mouse.move(0, 0); // else the page scrolls the map under the pointer, which then points
  await page.locator("canvas[role=application]").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const pair = page.getByText(/^h1\/nic0 → h0\/nic0: [0-9.]+ (ns|us|ms)$/);
  for (const until = Date.now() + patience; !(await pair.isVisible()) && Date.now() < until; ) { // fresh from its start it has no past of that pair yet
    await page.getByRole("button", { name: "10 s later" }).press("Enter");
    await page.waitForTimeout(500);
  }
  await pair.waitFor();
  const painted = () => page.evaluate(() => {
    const c = document.querySelector("canvas");
    return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length;
  });
  expect((await painted()) > 100_000, "no cell is drawn");
  await accessible(page);
  await page.getByLabel("Go to").fill("1700000000.5"); // nobody measured then
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByText(/nothing was measured then/).waitFor();
  await page.getByText("h1/nic0 → h0/nic0: not measured then").waitFor();
  expect((await painted()) < 10_000, "cells are drawn that nobody measured");
  await page.getByRole("button", { name: "Back to now" }).click();
  await pair.waitFor();
  await show(page, "Fleet");
});
await check("levels say what is broken, since when and by whom, and lead to the evidence", async () => {
  await show(page, "Levels");
  const row = (name) => page.getByRole("row", { name: new RegExp(name) });
  await row("at-once").getByText("■ broken").waitFor();
  await row("always").getByText("● met").waitFor();
  await row("by-racks").getByText("○ unknown").waitFor();
  await row("at-once").getByText("median one-way delay in the fleet ≤ 1 ns").waitFor();
  await row("at-once").getByText(/h\d\/nic\d: \d+ paths?/).first().waitFor();
  await page.getByRole("region", { name: "Changes, newest first" }).getByRole("row", { name: /at-once broken/ }).first().waitFor();
  await row("at-once").first().getByRole("link", { name: /ago|now/ }).click();
  await page.getByRole("status").filter({ hasText: /The mesh as it was at/ }).waitFor();
  await page.getByRole("button", { name: "Back to now" }).click();
  await show(page, "Levels");
  await row("at-once").getByRole("link", { name: /→/ }).click();
  await page.getByRole("heading", { name: /^h\d\/nic\d → h\d\/nic\d$/ }).waitFor();
});
await check("a job's row leads to its past, its flows and what happened to it", async () => {
  await show(page, "Jobs");
  await page.getByRole("link", { name: "4711" }).click();
  await page.getByRole("heading", { name: "Job 4711", exact: true }).waitFor();
  await page.getByText("2 of 2").first().waitFor();
  await page.getByText("Is it the network?").waitFor();
  await page.getByText("Throughput of all ranks").waitFor();
  await page.getByRole("region", { name: "Each rank's slowest flows, and those not well" }).getByText("h0").or(page.getByText(/lane \d/)).first().waitFor();
  await page.getByText(/job 4711, rank \d on h0, began/).first().waitFor();
  await page.getByRole("region", { name: /Flows by their median/ }).locator("svg text").filter({ hasText: /lane \d/ }).first().waitFor();
  await accessible(page);
});
await check("savings name the job, and what they assume", async () => {
  await show(page, "Savings");
  await page.getByRole("cell", { name: "4711" }).waitFor();
  await page.getByLabel(/A restart costs each GPU/).fill("60");
  await page.getByText("Restarts avoided").first().waitFor();
});
await check("an instant in the address is the same for whoever opens it", async () => {
  await page.getByLabel("Go to").fill("1732358587.204512031");
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByText("1732358587 204 512 031").waitFor();
  expect(new URL(page.url()).hash.includes("at=1732358587204512031"), page.url());
  await page.getByRole("button", { name: "Back to now" }).click();
});
await check("a token is made in the page, shown once, and revoked after a second question", async () => {
  await show(page, "Settings");
  await page.getByLabel("Name").fill("of the browser");
  await page.getByRole("button", { name: "Make a token" }).click();
  await page.getByText(/^The token of of the browser, shown this once: fla_/).waitFor();
  await page.getByRole("button", { name: "Revoke of the browser" }).click();
  await page.getByRole("button", { name: "Revoke of the browser: yes" }).click();
  await page.getByText("of the browser is refused from now on.").waitFor();
  await page.getByRole("region", { name: /Changes by people/ }).getByRole("row", { name: /token/ }).first().waitFor();
});
await check("a configuration's diff is seen before it is applied", async () => {
  await page.getByText("Change the configuration", { exact: true }).click();
  await page.getByLabel(/^YAML/).fill("flap_limit: 9\n");
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByRole("region", { name: "What would change" }).getByRole("row", { name: /flap_limit/ }).waitFor();
  await accessible(page);
});
await check("nonsense is answered with what was expected", async () => {
  await page.getByLabel("Go to").fill("soon");
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByText(/Expected nanoseconds/).waitFor();
});
await check("a phone shows every view without sideways scrolling", async () => {
  const phone = await open({ viewport: { width: 390, height: 800 } });
  await signIn(phone);
  for (const view of views) {
    await show(phone, view);
    const wide = await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wide <= 1, `${view} is ${wide} pixels too wide`);
    const head = await phone.evaluate(() => document.querySelector("main").getBoundingClientRect().top + scrollY);
    expect(head <= 80, `${view}: the header takes ${head} of 800 pixels`);
  }
  await phone.context().close();
});
await check("where the fabric differs from what was declared is said", async () => {
  await show(page, "Topology");
  await page.getByRole("region", { name: /Differences from the declared topology/ }).getByText("missing-host").first().waitFor();
  await page.getByText(/So trunks are not drawn/).waitFor(); // one bridge: nothing that could name itself
  await page.getByText("declared, not seen").waitFor();
});
await check("a host is checked on demand, and answered in a sentence", async () => {
  await show(page, "Fleet");
  await page.getByRole("combobox", { name: "Host" }).selectOption("h1");
  await page.getByRole("button", { name: "Check h1" }).click();
  const answer = page.locator("p[role=status]").filter({ hasText: /^\S+ (yes|no|unknown) / });
  await answer.waitFor({ timeout: patience });
  await accessible(page);
  return (await answer.textContent()).slice(0, 100);
});
await check("a host has a page of its own, and each of its NICs a history", async () => {
  await show(page, "Fleet");
  await page.getByRole("region", { name: "Hosts", exact: true }).getByRole("link", { name: "h1", exact: true }).click();
  await page.getByRole("heading", { name: "Host h1" }).waitFor();
  await page.getByRole("region", { name: "Its NICs" }).getByRole("row", { name: /nic0/ }).getByText("up").waitFor();
  await page.getByRole("button", { name: "nic0" }).click();
  await page.locator("figure.chart, .chart").first().waitFor();
  await accessible(page);
});
await check("a link that goes down is seen in the open page", async () => {
  await show(page, "Links");
  await page.getByRole("row", { name: /h1\/nic0/ }).getByText("up").waitFor();
  await want("down");
  const begin = Date.now();
  await page.getByRole("row", { name: /h1\/nic0/ }).getByText("down").waitFor({ timeout: patience });
  return `${Date.now() - begin} ms`;
});
await check("what is wrong is a sentence in Fleet", async () => {
  await show(page, "Fleet");
  await page.locator("article.sentence.bad").first().waitFor({ timeout: patience });
  return (await page.locator("article.sentence.bad p").first().textContent()).slice(0, 100);
});
await check("an incident's link leads to it, its evidence, what was told of it, and that moment in all views", async () => {
  await show(page, "Alerts");
  const sentence = page.locator("article.sentence").filter({ hasText: "h1/nic0: link is down" }).first();
  await sentence.getByRole("link", { name: /^incident \d+$/ }).click();
  await page.waitForURL(/incident=\d+/);
  const [number, at] = ["incident", "at"].map((key) => new RegExp(`${key}=(\\d+)`).exec(page.url())[1]);
  await page.goto("about:blank");
  await page.goto(`${url}/#/alerts?incident=${number}&at=${at}`); // as a receiver's link does
  await page.getByRole("heading", { name: new RegExp(`^Incident ${number}: h1/nic0`) }).waitFor();
  await page.getByRole("region", { name: "Evidence: alerts that fire in it now" }).getByRole("row", { name: /link-down .*h1\/nic0: link is down/ }).waitFor();
  await page.getByRole("region", { name: "Notifications about it" }).getByRole("row", { name: /opened/ }).first().waitFor();
  await accessible(page);
  await page.getByRole("link", { name: "what was wrong then" }).first().click();
  await page.getByRole("heading", { name: /^What was wrong at / }).waitFor();
  await page.locator("article.sentence").filter({ hasText: "h1/nic0" }).first().waitFor();
  await page.getByRole("navigation").getByRole("link", { name: "Links" }).click();
  await page.getByText("Events of links end at the chosen moment").waitFor();
  await page.getByText(/No link changed in the|Events of links before/).first().waitFor();
  await page.getByLabel("Go to").fill("1700000000"); // nothing had happened then
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Alerts" }).click();
  await page.getByText("There was no notification in this range.").waitFor();
  await page.goto(`${url}/#/alerts?incident=999999&at=${at}`);
  await page.getByText("Incident 999999 is not here").waitFor();
  await page.getByRole("button", { name: "Back to now" }).click();
});
await check("without its controller the page says so, and doesn't call it healthy", async () => {
  await show(page, "Fleet");
  await page.locator("article.sentence.bad").first().waitFor({ timeout: patience }); // or there is nothing that could be old
  await want("controller-stop");
  await page.getByText(/As of .*, not now/).first().waitFor({ timeout: patience });
  await page.getByText(/not live/).waitFor({ timeout: patience });
});
await finish();
