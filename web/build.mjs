// SPDX-License-Identifier: MIT
// Makes the page: messages from proto/, type check, bundle, fonts, gzip, and assets.c.
//
//   node build.mjs --out DIR --proto DIR [--protoc PROGRAM] [--dev]
//
// DIR holds node_modules already. --dev leaves out the type check and assets.c.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import zlib from "node:zlib";
import { jsonTypes } from "./jsontypes.mjs";

const { values: args } = parseArgs({
  options: {
    out: { type: "string" },
    proto: { type: "string" },
    protoc: { type: "string", default: "protoc" },
    dev: { type: "boolean", default: false },
  },
});
const src = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(args.out);
const dist = path.join(out, "dist");
const require = createRequire(path.join(out, "package.json"));
const esbuild = require("esbuild");
const GZIP_BUDGET = 195 * 1024;

/** Show a source folder in the build folder, where node_modules is. */
function link(name) {
  const to = path.join(out, name);
  fs.rmSync(to, { recursive: true, force: true });
  fs.symlinkSync(path.join(src, name), to);
}

function generateMessages() {
  const gen = path.join(out, "gen");
  fs.rmSync(gen, { recursive: true, force: true });
  fs.mkdirSync(gen, { recursive: true });
  const proto = path.resolve(args.proto);
  execFileSync(args.protoc, [
    `--plugin=protoc-gen-es=${path.join(out, "node_modules/.bin/protoc-gen-es")}`,
    `--es_out=${gen}`, "--es_opt=target=ts", "-I", proto,
    path.join(proto, "tracelake/v1/ranges.proto"),
  ], { stdio: "inherit" });
  const set = path.join(gen, "descriptors.bin");
  const all = fs.readdirSync(path.join(proto, "tracelake/v1")).map((name) => path.join(proto, "tracelake/v1", name));
  execFileSync(args.protoc, [`--descriptor_set_out=${set}`, "-I", proto, ...all], { stdio: "inherit" });
  fs.writeFileSync(path.join(gen, "answers.ts"), jsonTypes(fs.readFileSync(set), require));
}

function typeCheck() {
  const tsc = path.join(out, "node_modules/.bin/tsc");
  const { status } = spawnSync(tsc, ["-p", path.join(out, "tsconfig.json")], { stdio: "inherit" });
  if (status !== 0) process.exit(1); // tsc has said why
}

const common = {
  bundle: true,
  format: "esm",
  target: ["es2022"],
  preserveSymlinks: true,
  absWorkingDir: out,
  logLevel: "warning",
};
const small = { minify: true, legalComments: "none" };

/** The page's style sheet as one text, which its script brings along. */
function styleSheet() {
  const { outputFiles: [file] } = esbuild.buildSync({
    ...common, ...small, entryPoints: ["src/style/style.css"], external: ["*.woff2"], write: false,
  });
  return file.text.trim();
}

/**
 * app.js, with which the page opens, and later.js, which is loaded when it is first needed and takes what both use from
 * app.js: opening needs one script, and nothing is sent twice.
 */
function bundlePage() {
  const parts = path.join(out, "parts");
  fs.rmSync(parts, { recursive: true, force: true });
  const { metafile } = esbuild.buildSync({
    ...common,
    ...small,
    define: { STYLE_SHEET: JSON.stringify(styleSheet()) },
    entryPoints: [{ in: "src/main.ts", out: "app" }, { in: "src/panels/later.ts", out: "later" }],
    outdir: parts,
    splitting: true,
    metafile: true,
    external: ["./later.js"],
  });
  const names = Object.keys(metafile.outputs).map((name) => path.basename(name));
  const [shared, ...more] = names.filter((name) => name.startsWith("chunk-"));
  if (shared === undefined || more.length > 0) throw new Error(`the page and later.js share: ${names.join(", ")}`);
  const later = fs.readFileSync(path.join(parts, "later.js"), "utf8");
  // A page that was opened before its server was replaced must not load another one's part: names differ then.
  const make = `make${createHash("sha256").update(later).update(shared).digest("hex").slice(0, 12)}`;
  esbuild.buildSync({
    ...common,
    ...small,
    stdin: { contents: `import "./app.js"; export * from "./${shared}"; export const ${make} = 0;`, resolveDir: parts },
    outfile: "dist/app.js",
    external: ["./later.js"],
  });
  fs.writeFileSync(path.join(dist, "later.js"), `import{${make}}from"./app.js";${later.replaceAll(`"./${shared}"`, '"./app.js"')}`);
}

function bundle() {
  bundlePage();
  esbuild.buildSync({
    ...common,
    ...small,
    entryPoints: [{ in: "src/login/login.ts", out: "login" }, { in: "src/login/login.css", out: "login" }],
    outdir: "dist",
    external: ["*.woff2"],
  });
  const tests = fs.readdirSync(path.join(src, "test")).filter((n) => n.endsWith(".test.ts"));
  fs.rmSync(path.join(out, "test-bundle"), { recursive: true, force: true });
  if (tests.length === 0) return;
  esbuild.buildSync({
    ...common,
    entryPoints: tests.map((n) => `test/${n}`),
    platform: "node",
    outdir: "test-bundle",
    outExtension: { ".js": ".mjs" },
  });
}

/** A package's licence. */
function license(dir, name) {
  const file = fs.readdirSync(dir).find((n) => /^licen[cs]e/i.test(n));
  if (!file) throw new Error(`${name} has no licence text`);
  return fs.readFileSync(path.join(dir, file), "utf8").trim();
}

/** What is built in goes with its licence: the page's scripts and fonts, and all the rest is ours. */
function licenses(modules) {
  const shipped = ["lit-html", "@fontsource-variable/inter", "@fontsource/jetbrains-mono"];
  const own = fs.readFileSync(path.join(src, "../LICENSE"), "utf8").trim();
  const notices = shipped.map((name) => {
    const dir = path.join(modules, name);
    const info = JSON.parse(fs.readFileSync(path.join(dir, "package.json"), "utf8"));
    return `${name} ${info.version} (${info.license.replace(/^\((.*)\)$/, "$1")})\n\n${license(dir, name)}\n`;
  });
  const list = `tracelake (MIT)\n\n${own}\n\nIts page carries the following.\n`;
  return [list, ...notices].join(`\n${"-".repeat(72)}\n\n`);
}

function copyStatic() {
  const modules = path.join(out, "node_modules");
  fs.copyFileSync(path.join(modules,
    "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2"),
  path.join(dist, "sans.woff2"));
  fs.copyFileSync(path.join(modules,
    "@fontsource/jetbrains-mono/files/jetbrains-mono-latin-400-normal.woff2"),
  path.join(dist, "mono.woff2"));
  // The icon lies in the pages: opening one asks for nothing more.
  const icon = `data:image/svg+xml;base64,${fs.readFileSync(path.join(src, "src/favicon.svg")).toString("base64")}`;
  for (const name of ["index.html", "login.html"]) {
    const page = fs.readFileSync(path.join(src, "src", name === "index.html" ? "" : "login", name), "utf8");
    if (!page.includes('"favicon.svg"')) throw new Error(`${name} has no icon`);
    fs.writeFileSync(path.join(dist, name), page.replace('"favicon.svg"', `"${icon}"`));
  }
  fs.writeFileSync(path.join(dist, "licenses.txt"), licenses(modules));
}

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
};

function cArray(name, bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 64) {
    lines.push(`${bytes.subarray(i, i + 64).join(",")},`);
  }
  return `static const unsigned char ${name}[] = {\n${lines.join("\n")}\n};\n`;
}

function writeAssets() {
  const arrays = [];
  const rows = [];
  let total = 0;
  for (const [i, name] of fs.readdirSync(dist).sort().entries()) {
    const data = fs.readFileSync(path.join(dist, name));
    const packed = zlib.gzipSync(data, { level: 9 });
    const smaller = packed.length < data.length;
    total += name === "licenses.txt" ? 0 : Math.min(packed.length, data.length);
    arrays.push(cArray(`data_${i}`, data));
    if (smaller) arrays.push(cArray(`gzip_${i}`, packed));
    const etag = createHash("sha256").update(data).digest("hex").slice(0, 20);
    const rest = `"${TYPES[path.extname(name)]}", data_${i}, sizeof data_${i}, ${
      smaller ? `gzip_${i}, sizeof gzip_${i}` : "NULL, 0"}, "\\"${etag}\\""},`;
    if (name === "index.html") rows.push(`    {"/", ${rest}`);
    if (name === "login.html") rows.push(`    {"/login", ${rest}`);
    rows.push(`    {"/${name}", ${rest}`);
  }
  if (total > GZIP_BUDGET) {
    throw new Error(`the page is ${total} bytes gzip'd, more than ${GZIP_BUDGET}`);
  }
  fs.writeFileSync(path.join(out, "assets.c"), `/* Made by web/build.mjs. */
#include "web/assets.h"

${arrays.join("\n")}
const struct tl_asset tl_assets[] = {
${rows.join("\n")}
};
const size_t tl_assets_n = sizeof tl_assets / sizeof tl_assets[0];
`);
  console.log(`page: ${(total / 1024).toFixed(1)} KiB gzip'd`);
}

fs.rmSync(dist, { recursive: true, force: true });
fs.mkdirSync(dist, { recursive: true });
link("src");
link("test");
fs.copyFileSync(path.join(src, "tsconfig.json"), path.join(out, "tsconfig.json"));
generateMessages();
if (!args.dev) typeCheck();
bundle();
copyStatic();
if (!args.dev) writeAssets();
