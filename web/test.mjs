// node test.mjs: types, then the unit tests (bundled first: they are TypeScript), by node's own runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = await mkdtemp(path.join(tmpdir(), "foliot-web-test-"));
try {
  const types = spawnSync(process.execPath, [path.join(here, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", here], { stdio: "inherit" });
  const tests = (await readdir(path.join(here, "test/unit"))).filter((f) => f.endsWith(".test.ts"));
  await build({
    absWorkingDir: here,
    entryPoints: tests.map((f) => `test/unit/${f}`),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    jsx: "automatic",
    jsxImportSource: "preact",
    alias: { "uplot/dist/uPlot.min.css": path.join(here, "src/app.css"), uplot: path.join(here, "test/unit/uplot.ts") }, // there is no canvas: what would be drawn is kept
    loader: { ".css": "empty" },
    logLevel: "warning",
  });
  const run = spawnSync(process.execPath, ["--test", ...tests.map((f) => path.join(out, f.replace(/\.ts$/, ".mjs")))], { cwd: here, stdio: "inherit" });
  process.exitCode = types.status || run.status || 0;
} finally {
  await rm(out, { recursive: true, force: true });
}
