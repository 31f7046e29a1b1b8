// page.mjs: what tests of the dashboard in Debian's Chromium, headless, share. One line a check, "ok …" or "FAIL …".
// Between checks it says what it waits for ("WANT …") and goes on when a line comes on its standard input.
import { createRequire } from "node:module";
import readline from "node:readline";

export const [url, token, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
export const { chromium } = require("playwright-core");
export const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium", args = ["--no-sandbox", "--disable-gpu"];
const axe = require("axe-core").source;
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const patience = 120_000; // CI is slow; what is right comes long before
let failed = 0;
let opened; // the page opened last
/** What it shows: that is most of why something on it wasn't found. */
async function shown() {
  const text = opened?.evaluate(() => `${location.href}\n${document.body.innerText}`).catch((error) => String(error.message ?? error));
  return (await Promise.race([text, new Promise((done) => setTimeout(done, 5_000, "The page doesn't answer."))]) ?? "").slice(0, 1500);
}
export async function check(name, run) {
  try {
    const said = await run();
    console.log(`ok ${name}${said === undefined ? "" : `: ${said}`}`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}: ${String(error.message ?? error).slice(0, 1500)}\n${await shown()}`);
  }
}
export function expect(true_, text) {
  if (!true_) {
    throw new Error(text);
  }
}
export async function want(what) {
  console.log(`WANT ${what}`);
  await lines.next();
}

const browser = await chromium.launch({ executablePath, args });
const complaints = [];
export async function open(options) {
  const context = await browser.newContext({ bypassCSP: false, ...options });
  context.setDefaultTimeout(patience);
  const page = (opened = await context.newPage());
  page.on("console", (m) => m.type() === "error" && !/status of 40[14]/.test(m.text()) && complaints.push(m.text()));
  page.on("pageerror", (e) => complaints.push(String(e)));
  page.on("request", (r) => !r.url().startsWith(url) && !r.url().startsWith("data:") && complaints.push(`asked elsewhere: ${r.url()}`));
  return page;
}
/** Chromium drops what it has begun when an address comes to the host or goes: the page itself, or a script of it, which leaves the
 * page empty without an error. Such a visit is made again; any other error is the caller's. */
export async function visit(page, at) {
  for (let left = 20; ; left--) {
    let dropped = false;
    const note = (request) => (dropped ||= request.failure()?.errorText === "net::ERR_NETWORK_CHANGED");
    page.on("requestfailed", note);
    try {
      await page.goto(at);
    } catch (error) { // the error page of the first visit, or its reload, may come into the second one
      if (left === 0 || !/ERR_NETWORK_CHANGED|interrupted by another navigation/.test(String(error))) {
        throw error;
      }
      dropped = true;
    } finally {
      page.off("requestfailed", note);
    }
    if (!dropped || left === 0) {
      return;
    }
    console.log(`ok the network changed: ${at} is visited again`);
  }
}
export async function signIn(page) {
  await visit(page, `${url}/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Fleet", exact: true }).waitFor();
}
export const views = ["Fleet", "Clock", "Mesh", "Links", "Jobs", "Audit", "Alerts", "Levels", "Topology", "Savings", "Settings"];
export async function show(page, view) {
  await page.getByRole("navigation").getByRole("link", { name: view }).click();
  await page.getByRole("heading", { name: view, exact: true, level: 1 }).waitFor();
  await page.waitForFunction(() => !/Loading /.test(document.querySelector("main")?.textContent ?? ""));
}
export async function accessible(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
  expect(result.violations.length === 0, result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).slice(0, 3).join("; ")}`).join(" | "));
}
export async function finish() {
  // The tab's icon of a page that is left for about:blank may be asked for by the empty page, which has no origin.
  const own = complaints.filter((c) => !/ERR_CONNECTION_REFUSED|Failed to load resource|icon\.svg' from origin 'null'/.test(c));
  await check("nothing from elsewhere was asked for, no policy was broken, no error was thrown", async () => expect(own.length === 0, own.join(" | ")));
  await browser.close();
  process.exit(failed === 0 ? 0 : 1);
}
