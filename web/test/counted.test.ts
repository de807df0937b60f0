// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { arrows } from "../src/panels/counted.ts";

test("arrows are the taken branches whose target is in the function, shorter ones nearer", () => {
  const rows = [
    { pc: "0xffffffc000080000", text: "b.ne 0xffffffc00008000c <f+0xc>", taken: 3 },
    { pc: "0xffffffc000080004", text: "b 0xffffffc000080008", taken: 2 },
    { pc: "0xffffffc000080008", text: "cbz x0, 0xffffffc000080000", taken: 0 },
    { pc: "0xffffffc00008000c", text: "b 0xffffffc000080000", taken: 5 },
    { pc: "0xffffffc000080010", text: "bl 0x400000", taken: 9 }];
  assert.deepEqual(arrows(rows), [
    { from: 1, to: 2, taken: 2, level: 0 }, { from: 0, to: 3, taken: 3, level: 1 }, { from: 3, to: 0, taken: 5, level: 2 }]);
});
