// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trace } from "../src/data/model.ts";
import { usualAxis } from "../src/view/axes.ts";

test("a trace opens by time, unless a lane that executed would be empty", () => {
  const lane = (insns: number, hasTime: boolean): object => ({ insns, hasTime, timeFirst: 0, timeLast: hasTime ? 9 : 0 });
  const axis = (...streams: object[]): string => usualAxis({ streams } as unknown as Trace);
  assert.equal(axis(lane(5, true), lane(7, true)), "time");
  assert.equal(axis(lane(5, true), lane(0, false)), "time");
  assert.equal(axis(lane(5, true), lane(7, false)), "insn");
  assert.equal(axis(lane(7, false)), "insn");
});
