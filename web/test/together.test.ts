// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { readTrace } from "../src/model.ts";
import { laidUpon, readMoments, sameClock, usualOffset } from "../src/together.ts";

const trace = (first: string, clock?: string): ReturnType<typeof readTrace> => readTrace({
  id: "t", labels: clock === undefined ? {} : { clock },
  streams: [{ name: "a", has_time: true, time_unit_ns: true, time_first: first, time_last: String(BigInt(first) + 1000n) },
    { name: "b", has_time: false }],
});

test("traces of one clock are compared as they are, others from where they begin", () => {
  const [a, b, c] = [trace("1000", "lab"), trace("9223372036854775807", "lab"), trace("500")];
  assert.ok(sameClock(a, b) && !sameClock(a, c) && !sameClock(c, trace("500")));
  assert.equal(usualOffset(a, b), 0n);
  assert.equal(usualOffset(a, c), -500n);
  assert.equal(laidUpon(a, c, 1200, usualOffset(a, c)), 700);
  assert.equal(BigInt(laidUpon(c, b, 600, usualOffset(c, b))) + b.epoch, 9223372036854775907n);
});

test("moments have the timestamps around them", () => {
  const told = { streams: { a: { insn: 7, time: 120, time_from: 100, time_to: 150, row: { insn: 7, pc: "0x10", text: "nop", function: "f+0x4" } },
    b: { insn: 9, time: 130, time_from: 130 } } };
  const got = readMoments(told, 0n);
  assert.deepEqual([got.get("a")!.from, got.get("a")!.to, got.get("a")!.row!.fn], [100, 150, "f"]);
  assert.deepEqual([got.get("b")!.to, got.get("b")!.row], [Infinity, undefined]);
});
