// tls.mjs URL TOKEN NODE_MODULES OTHER_URLS FOREIGN_URL: the dashboard over the controller's own TLS. No error of a certificate is
// overlooked: at first nobody trusts the API's authority, then Chromium's own store (NSS) has it.
import { args, check, chromium, executablePath, expect, finish, token, url, visit, want } from "./page.mjs";

const others = process.argv.slice(5);
const foreign = others.pop();

async function browse(run) { // a browser of its own: it reads the store when it starts
  const browser = await chromium.launch({ executablePath, args: [...args, "--host-resolver-rules=MAP controller.example 10.90.0.1"] });
  try {
    await run(await (await browser.newContext()).newPage());
  } finally {
    await browser.close();
  }
}
const refused = (at, why) => browse(async (page) => {
  const said = await visit(page, at).then(() => "it opened", (error) => String(error));
  expect(said.includes(why), said);
});
await check("a browser that doesn't trust the API's authority complains of that alone", () => refused(`${url}/`, "ERR_CERT_AUTHORITY_INVALID"));
await want("trust");
for (const each of [url, ...others]) {
  await check(`${each} opens, signs in and is live`, () => browse(async (page) => {
    await visit(page, `${each}/`);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Fleet", exact: true }).waitFor();
    await page.getByText(/● live/).waitFor();
  }));
}
await check("an address that isn't in the certificate is refused", () => refused(`${foreign}/`, "ERR_CERT_COMMON_NAME_INVALID"));
await finish();
