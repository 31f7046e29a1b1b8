// watching.mjs URL TOKEN NODE_MODULES: what nobody watches, in Fleet: none, some, and what isn't known any more (page.mjs).
import { accessible, check, expect, finish, open, signIn, want } from "./page.mjs";

const page = await open({});
const tile = (label) => page.locator("a.tile").filter({ hasText: label });
const value = async (label, text, tone) => {
  await tile(label).getByText(text, { exact: true }).waitFor();
  expect((await tile(label).locator(".value").getAttribute("class")).split(" ").includes(tone), `${label} isn't ${tone}`);
};
const section = page.getByRole("region", { name: "Not watched", exact: true });
async function inBoth(name) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    await accessible(page);
  }
  await page.setViewportSize({ width: 390, height: 800 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(wide <= 1, `${name} is ${wide} pixels too wide for a phone`);
  await page.setViewportSize({ width: 1280, height: 720 });
}

await check("none: both are good, and say so when opened", async () => {
  await signIn(page);
  await value("NICs unwatched", "0 of 4", "good");
  await value("Hosts with sensors off", "0 of 2", "good");
  await tile("NICs unwatched").focus();
  await page.keyboard.press("Enter");
  await section.getByText("Every NIC is watched.").waitFor();
  await tile("Hosts with sensors off").click();
  await section.getByText("Every host watches everything.").waitFor();
  await inBoth("none");
  await section.getByRole("button", { name: "Close" }).click();
  await section.waitFor({ state: "detached" });
});
await check("some: they are counted at once, and opened by name with the reason", async () => {
  await want("some");
  await value("NICs unwatched", "2 of 4", "warn");
  await value("Hosts with sensors off", "1 of 2", "warn");
  await tile("NICs unwatched").click();
  const nics = section.getByRole("region", { name: "NICs that are not watched" });
  await nics.getByRole("row", { name: /^h0\/nic0 up <b>no socket<\/b>$/ }).waitFor();
  await nics.getByRole("row", { name: /^h0\/nic1 unknown its link can't be read$/ }).waitFor();
  expect((await nics.getByRole("row").count()) === 3, "others are listed, too");
  await inBoth("some NICs");
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address); // a link shows another the same thing
  await nics.waitFor();
  await tile("Hosts with sensors off").click();
  await section.getByRole("row", { name: /^h1 routers can't be heard; link state can't be read/ }).waitFor();
  await inBoth("some sensors");
});
await check("stale: what a silent host said last is no longer what is, and none isn't called good", async () => {
  await want("silence");
  await value("NICs unwatched", "0 of 4 (4 unknown)", "warn");
  await value("Hosts with sensors off", "0 of 2 (2 unknown)", "warn");
  await section.getByText("No host that reports has a sensor off.").waitFor();
  await section.getByText("No current state of 2 hosts:").waitFor();
  await tile("NICs unwatched").click();
  await section.getByText("No current state of 4 NICs:").waitFor();
  await section.getByText("No NIC of a host that reports is unwatched.").waitFor();
  await inBoth("stale");
  await section.getByRole("link", { name: "hosts that aren't heard" }).click();
  await page.getByRole("region", { name: "Hosts", exact: true }).getByRole("row", { name: /^h0 unknown/ }).waitFor();
});
await check("without its controller it is as of then, not now", async () => {
  await want("controller-stop");
  await section.getByText(/As of .*, not now/).waitFor();
});
await finish();
