// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { editorAddress, EDITORS, isMap, mapped } from "../src/view/sources.ts";

test("the longest folder that fits is mapped, and only whole folders fit", () => {
  const maps = ["/build=/home/me", "/build/fw/=/src/fw/", "C:/w=/win", "no map", "=x", "a="];
  assert.deepEqual(maps.map(isMap), [true, true, true, false, false, false]);
  for (const [from, to] of [["/build/a.c", "/home/me/a.c"], ["/build/fw/x/a.c", "/src/fw/x/a.c"], ["/building/a.c", "/building/a.c"],
    ["C:/w/a.c", "/win/a.c"], ["rel/a.c", "rel/a.c"], ["/build", "/home/me"], ["", ""]]) assert.equal(mapped(from!, maps), to);
});

test("an editor's address names path and line, and runs nothing", () => {
  const [[, code]] = EDITORS as [readonly [string, string]];
  assert.equal(editorAddress(code, "/home/me/a b#?.c", 12), "vscode://file/home/me/a%20b%23%3F.c:12");
  assert.equal(editorAddress(code, "C:\\w\\a.c", 0), "vscode://file/C:/w/a.c:1");
  assert.equal(editorAddress(code, "src/a.c", 3), "", "nobody knows where that is");
  for (const bad of ["javascript:alert(1)", "JavaScript:x", "data:text/html,x", "", "{path}"]) assert.equal(editorAddress(bad, "/a.c", 3), "", bad);
});
