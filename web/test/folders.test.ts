// SPDX-License-Identifier: MIT
// The folders of the page use each other in one direction only, as README.md lists them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

/** From below to above, generated ones first; files of no folder are above all. */
const ORDER = ["../gen", "style", "base", "data", "view", "timeline", "panels"];
const src = path.join(path.dirname(fileURLToPath(import.meta.url)), "../src");

test("a folder uses only those below it", () => {
  const files = fs.readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  assert.ok(files.length > 60, `${files.length} files`);
  const seen = new Set<string>();
  for (const file of files) {
    const folder = path.dirname(file);
    seen.add(folder);
    for (const [, name] of fs.readFileSync(path.join(src, file), "utf8").matchAll(/from "(\.[^"]*\.ts)"/g)) {
      const used = path.dirname(path.join(folder, name!));
      const below = folder === "." || used === folder || (ORDER.includes(used) && ORDER.indexOf(used) < ORDER.indexOf(folder));
      assert.ok(below, `${file} uses ${name}`);
    }
  }
  for (const folder of seen) assert.ok([".", "login", ...ORDER].includes(folder), `${folder} has no place in the order`);
});
