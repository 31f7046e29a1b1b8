// dashboard.mjs URL TOKEN NODE_MODULES visible|matrix|axe|week: figures of the dashboard in headless Chromium, one JSON object a line.
// visible: prints {"want":"NAME"} when the page shows NAME's link up, and {"seen":NAME,"at":EPOCH_MS} when it shows it down.
// matrix: {"first_paint_ms":…} of the mesh's heat map, and {"pan":[…]}: the longest task of the main thread in each pan over all NICs.
// axe: {"violations":[…]}: what axe finds against WCAG 2.1 AA in each view, light, dark, and on a phone.
// week: reads a number of requests; lets the page make as many, its timers a thousand times as fast, view after view, and prints
// {"sample":{requests,heap,nodes,listeners,documents}} of Fleet, collected, after each round of them.
import { createRequire } from "node:module";
import readline from "node:readline";

const [url, token, modules, what] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await (await browser.newContext({ viewport: { width: 1400, height: 1000 } })).newPage();
page.setDefaultTimeout(60_000);
const say = (object) => console.log(JSON.stringify(object));

if (what === "week") {
  await page.addInitScript(() => {
    const [timeout, ask] = [globalThis.setTimeout, globalThis.fetch];
    globalThis.asked = 0;
    globalThis.setTimeout = (run, ms, ...more) => timeout(run, (ms ?? 0) / 1000, ...more);
    globalThis.fetch = (...words) => {
      globalThis.asked++;
      return ask(...words);
    };
  });
}
await page.goto(`${url}/`);
await page.getByLabel("Token").fill(token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.getByRole("heading", { name: "Fleet", exact: true }).waitFor();

async function visible() {
  await page.getByRole("navigation").getByRole("link", { name: "Links" }).click();
  await page.getByRole("row", { name: /h1\/nic0/ }).waitFor();
  await page.evaluate(() => {
    globalThis.shown = (name, state) => {
      const row = [...document.querySelectorAll("tr")].find((r) => r.textContent.includes(name));
      return row !== undefined && [...row.querySelectorAll("td")].some((d) => d.textContent.trim().endsWith(state));
    };
    globalThis.until = (name, state) =>
      new Promise((done) => {
        const look = () => globalThis.shown(name, state) && (observer.disconnect(), requestAnimationFrame(() => done(performance.timeOrigin + performance.now())));
        const observer = new MutationObserver(look);
        observer.observe(document.body, { subtree: true, childList: true, characterData: true });
        look();
      });
  });
  for (;;) {
    const next = await lines.next();
    const name = next.done ? "" : next.value.trim();
    if (name === "") {
      return;
    }
    await page.evaluate((n) => globalThis.until(n, "up"), name);
    const seen = page.evaluate((n) => globalThis.until(n, "down"), name);
    say({ want: name });
    say({ seen: name, at: await seen });
  }
}

// Of a trace: the durations of all tasks of the page's main thread.
function tasks(trace) {
  const events = JSON.parse(trace.toString()).traceEvents;
  const main = new Set(events.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid}/${e.tid}`));
  return events.filter((e) => e.name === "RunTask" && e.ph === "X" && main.has(`${e.pid}/${e.tid}`)).map((e) => e.dur / 1000);
}

async function matrix() {
  const size = Number((await lines.next()).value);
  const paints = [];
  for (let i = 0; i < 5; i++) {
    await page.goto(`${url}/#/fleet`);
    await page.reload(); // as whoever follows a link to the view
    await page.getByRole("heading", { name: "Fleet", exact: true }).waitFor();
    paints.push(await page.evaluate(async () => {
      const begin = performance.now();
      [...document.querySelectorAll("nav a")].find((a) => a.textContent.includes("Mesh")).click();
      for (;;) {
        const canvas = document.querySelector("canvas");
        if (canvas?.getAttribute("aria-label")?.startsWith("One-way delays between")) { // with its first pixels
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // that frame is on the screen
          return performance.now() - begin;
        }
        await new Promise((done) => requestAnimationFrame(done));
      }
    }));
  }
  say({ first_paint_ms: paints });
  await page.goto(`${url}/#/mesh?level=nic`); // the map that has the most to draw
  await page.locator(`canvas[aria-label*="${size} NICs"]`).waitFor();
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((v, i) => i % 4 === 3 && v === 255).length;
  });
  if (drawn < 1000) {
    throw new Error(`the heat map is empty: ${drawn} pixels`);
  }
  await page.reload(); // reading pixels made the canvas another one
  await page.locator("canvas[role=application]").waitFor();
  const box = await page.locator("canvas[role=application]").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  const pans = [];
  for (let i = 0; i < 24; i++) {
    await page.mouse.wheel(0, i % 6 < 4 ? -300 : 300); // at several depths
    await page.waitForTimeout(100);
    await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
    await page.mouse.down();
    for (let k = 1; k <= 30; k++) {
      await page.mouse.move(x + 4 * k * (i % 2 ? 1 : -1), y + 3 * k);
    }
    await page.mouse.up();
    pans.push(Math.max(...tasks(await browser.stopTracing())));
    if (!page.url().includes("mesh")) {
      await page.goBack();
    }
    await page.mouse.move(x, y);
  }
  say({ pan: pans });
}

async function axe() {
  await lines.next();
  const { source } = createRequire(`${modules}/`)("axe-core");
  const found = [];
  for (const [width, colorScheme] of [[1400, "light"], [1400, "dark"], [390, "light"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    for (const view of ["fleet", "clock", "mesh", "links", "hosts/load0", "jobs", "audit", "alerts", "levels", "topology", "savings", "settings"]) {
      await page.goto(`${url}/#/${view}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForFunction(() => !/Loading /.test(document.querySelector("main").textContent));
      await page.evaluate(source);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
      found.push(...violations.map((v) => `${view} ${width} ${colorScheme}: ${v.id}`));
    }
  }
  say({ violations: found });
}

async function week() {
  const wanted = Number((await lines.next()).value);
  const cdp = await page.context().newCDPSession(page);
  const broken = [];
  page.on("pageerror", (error) => broken.push(String(error)));
  const views = ["Clock", "Mesh", "Links", "Jobs", "Alerts", "Levels", "Topology", "Savings", "Fleet"];
  const asked = () => page.evaluate(() => globalThis.asked);
  for (let total = 0; total < wanted; ) {
    for (const view of views) {
      await page.getByRole("navigation").getByRole("link", { name: view }).click();
      await page.getByRole("heading", { name: view, exact: true, level: 1 }).waitFor();
      const until = (await asked()) + (view === "Fleet" ? 200 : 20); // it is Fleet that stays on the screen
      await page.waitForFunction((n) => globalThis.asked >= n, until, { polling: 100 });
    }
    await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize } = await cdp.send("Runtime.getHeapUsage");
    const { nodes, jsEventListeners, documents } = await cdp.send("Memory.getDOMCounters");
    total = await asked();
    say({ sample: { requests: total, heap: usedSize, nodes, listeners: jsEventListeners, documents } });
  }
  await page.getByText(/● live/).first().waitFor({ timeout: 10_000 }).catch(async () => broken.push(`not live: ${await page.locator(".clockbar").textContent()}`));
  say({ errors: broken });
}

await { visible, matrix, axe, week }[what]();
await browser.close();
