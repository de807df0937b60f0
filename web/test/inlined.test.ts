// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { InsnCache } from "../src/data/insns.ts";
import { readInsns } from "../src/data/model.ts";
import { inlinedRuns } from "../src/timeline/inlined.ts";
import { inlinedText, shortPlace } from "../src/panels/sourcelink.ts";

const row = (insn: number, ...inlined: string[]): unknown => ({
  insn, pc: "0x10", function: "main+0x4", text: "nop", file: "/a/b.c", line: 7,
  inlined: inlined.map((fn, i) => ({ function: fn, file: "/a/b.c", line: 10 + i })),
});

test("places and chains of inlined functions are read", () => {
  const [one] = readInsns([row(0, "outer", "inner")]);
  assert.equal(shortPlace(one!.file, one!.line), "b.c:7");
  assert.equal(inlinedText(one!), "inner, inlined in outer, inlined in main");
  const [bare] = readInsns([{ insn: 1, pc: "0x10", text: "nop" }]);
  assert.deepEqual([bare!.file, bare!.line, bare!.inlined.length], ["", 0, 0]);
});

test("runs of inlined functions lie below the innermost slice", async () => {
  const rows = [row(0), row(1, "a"), row(2, "a", "b"), row(3, "a", "b"), row(4, "a"), row(5), row(6, "a")];
  const cache = new InsnCache({ id: "t", epoch: 0n }, "s", () => {}, async () => readInsns(rows));
  cache.want(0, 7, 7);
  await new Promise((done) => { setTimeout(done, 0); });
  const slices = [{ depth: 0, from: 0, to: 7, name: "main" }, { depth: 1, from: 6, to: 7, name: "sub" }];
  assert.deepEqual(inlinedRuns(cache, slices, 0, 7).map((r) => [r.fn, r.from, r.to, r.depth]),
    [["a", 1, 5, 1], ["b", 2, 4, 2], ["a", 6, 7, 2]]);
});
