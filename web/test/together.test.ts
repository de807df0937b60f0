// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { readTrace } from "../src/data/model.ts";
import { byArrival, laidUpon, readMoments, sameClock, usualOffset } from "../src/data/together.ts";

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

test("traces whose clocks are related to the server's are laid upon each other by it", () => {
  const related = (first: string, clock: object): ReturnType<typeof readTrace> => readTrace({ id: "t", labels: {}, streams: [
    { name: "a", has_time: true, time_unit_ns: true, time_first: first, time_last: String(BigInt(first) + 1000n), clock }] });
  const unix = 1790000000000000000n;
  const a = related("5000", { at: "10000000", unix_ns: String(unix), rate: 1, rate_error: 1e-5, spread_ns: 300, pairs: 9 });
  const b = related("9223372036854775807", { at: "9223372036854775907", unix_ns: String(unix + 2000000n), rate: 1.001, rate_error: 0, spread_ns: 200, pairs: 9 });
  // 12 ms of a are 2 ms behind its middle, and as late as the middle of b.
  assert.deepEqual(byArrival(a, b, 12000000 - Number(a.epoch)), { offset: 9223372036854775907n - 12000000n, within: 300 + 200 + 20 });
  assert.equal(byArrival(a, b, 13001000 - Number(a.epoch))!.offset, 9223372036854775907n + 1000000n - 13001000n);
  assert.equal(usualOffset(b, a, Number(9223372036854775907n - b.epoch)), 12000000n - 9223372036854775907n);
  assert.equal(byArrival(a, trace("0")), undefined);
});
