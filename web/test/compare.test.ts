// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";
import { pairs } from "../src/data/compare.ts";

test("a hunk lies between what is alike around it", () => {
  const rows = pairs({ aFrom: 10, aTo: 12, bFrom: 20, bTo: 21 }, 2, 100, [1000, 1000]);
  assert.deepEqual(rows.map((r) => [r.a, r.b, r.same]), [
    [8, 18, true], [9, 19, true], [10, 20, false], [11, undefined, false], [12, 21, true], [13, 22, true],
  ]);
});

test("nothing is shown from before the begin or behind the end, and of long ones the begin", () => {
  assert.deepEqual(pairs({ aFrom: 0, aTo: 0, bFrom: 3, bTo: 4 }, 5, 9, [1, 5]).map((r) => [r.a, r.b]),
    [[undefined, 3], [0, 4]]);
  const long = pairs({ aFrom: 1, aTo: 500, bFrom: 1, bTo: 1 }, 3, 10, [900, 900]);
  assert.equal(long.length, 11);
  assert.ok(long.slice(1).every((r) => !r.same && r.b === undefined));
});
