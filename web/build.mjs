// node build.mjs [OUT]: the dashboard as files that the controller carries: index.html, app.js, app.css.
// One bundle, no outside asset; names don't change, the controller serves them with a hash as ETag.
import { build } from "esbuild";
import { copyFile, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(here, "../build/web/assets"));

await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
});
await copyFile(path.join(here, "src/index.html"), path.join(out, "index.html"));
await copyFile(path.join(here, "src/icon.svg"), path.join(out, "icon.svg"));
for (const name of ["app.js", "app.css"]) {
  const { size } = await stat(path.join(out, name));
  if (size > 220_000) { // a third of it travels: the controller sends it compressed
    throw new Error(`${name} has ${size} bytes: expected at most 220000; what grew?`);
  }
}
