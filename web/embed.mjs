// node embed.mjs OUT.c: builds the dashboard and writes it as C: src/service/controller/api/page.h says how it reads.
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = path.dirname(fileURLToPath(import.meta.url));
const types = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", yaml: "application/yaml" };
const out = process.argv[2];
if (out === undefined) {
  console.error("usage: node embed.mjs OUT.c");
  process.exit(2);
}
const folder = await mkdtemp(path.join(tmpdir(), "foliot-web-"));
try {
  const made = spawnSync(process.execPath, [path.join(here, "build.mjs"), folder], { stdio: "inherit" });
  if (made.status !== 0) {
    process.exit(made.status ?? 1);
  }
  const files = ["index.html", "app.js", "app.css", "icon.svg"].map((name) => [name === "index.html" ? "/" : `/${name}`, path.join(folder, name)]);
  files.push(["/api/v1/openapi.yaml", path.join(here, "..", "docs", "openapi.yaml")]);
  let text = "/* Written by web/embed.mjs: don't edit. */\n#include \"service/controller/api/page.h\"\n\n";
  let table = "";
  for (const [i, [at, file]] of files.entries()) {
    const bytes = await readFile(file);
    const gzip = gzipSync(bytes, { level: 9 });
    gzip[9] = 255; // whichever system built it: the same bytes
    const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
    const array = (data) => [...data].map((b, k) => (k % 24 === 23 ? `${b},\n` : `${b},`)).join("");
    text += `static const unsigned char plain${i}[] = {\n${array(bytes)}};\nstatic const unsigned char gzip${i}[] = {\n${array(gzip)}};\n`;
    table += `    {"${at}", "${types[file.split(".").pop()]}", "\\"${hash}\\"", plain${i}, sizeof(plain${i}), gzip${i}, sizeof(gzip${i})},\n`;
  }
  text += `\nconst struct page_file page_files[] = {\n${table}};\nconst size_t page_file_count = sizeof(page_files) / sizeof(page_files[0]);\n`;
  await writeFile(out, text);
} finally {
  await rm(folder, { recursive: true, force: true });
}
