// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { parseRange, type Spot, type Wish } from "../src/view/range.ts";

const read = (text: string, names: readonly string[] = []): Wish => parseRange(text, (name) => names.includes(name));
const ns = (at: number): Spot => ({ kind: "time", at: BigInt(at), ns: true });
const insn = (at: number): Spot => ({ kind: "insn", at });
const name = (text: string): Spot => ({ kind: "name", text });
const range = (from: Spot | undefined, to: Spot | undefined, length = false): Wish => ({ kind: "range", from, to, length });

test("a place", () => {
  for (const [text, at] of [
    ["1.5ms", ns(1.5e6)], ["1.5 ms", ns(1.5e6)], [" 2 s", ns(2e9)], ["1,000.802 347 ms", ns(1000802347)], ["200 µs", ns(2e5)],
    ["7 ticks", { kind: "time", at: 7n, ns: false }], ["1000", insn(1000)], ["#1,000", insn(1000)], ["1K", insn(1000)],
    ["1.5M", insn(1.5e6)], ["2 G insns", insn(2e9)], ["main", name("main")], ["0x8000", name("0x8000")], ["event:gap", name("event:gap")],
    ["std::sort", name("std::sort")], ["call:main", name("call:main")],
  ] as const) assert.deepEqual(read(text), { kind: "spot", at }, text);
});

test("from and to, in whatever way they are written", () => {
  const wanted = range(ns(59.7e6), ns(59.9e6));
  for (const text of ["59.7ms:59.9ms", "59.7:59.9ms", "59.7ms : 59.9", "59.7 ms – 59.9 ms", "59.7ms-59.9ms", "59.7 – 59.9ms", "59.7ms..59.9ms", "59.7 ms to 59.9 ms"]) {
    assert.deepEqual(read(text), wanted, text);
  }
  for (const text of ["1K:2K", "1,000 – 2,000", "#1000:#2000", "1000-2000", "1000 2K".replace(" ", " - ")]) {
    assert.deepEqual(read(text), range(insn(1000), insn(2000)), text);
  }
  assert.deepEqual(read("59.7ms:+200us"), range(ns(59.7e6), ns(2e5), true));
  assert.deepEqual(read("1K:+500"), range(insn(1000), insn(500), true));
  assert.deepEqual(read("1ms:"), range(ns(1e6), undefined));
  assert.deepEqual(read(":1ms"), range(undefined, ns(1e6)));
  assert.deepEqual(read("0 – 1.5 ms"), range(ns(0), ns(1.5e6)), "as the page writes it");
  assert.deepEqual(read("main:gap"), range(name("main"), name("gap")));
  assert.deepEqual(read("a::b:+1ms"), range(name("a::b"), ns(1e6), true));
  assert.deepEqual(read("event:gap – 5 ms"), range(name("event:gap"), ns(5e6)));
});

test("everything", () => {
  for (const text of ["", "  ", "all", ":", "–"]) assert.deepEqual(read(text), { kind: "whole" }, text);
});

test("a function may have any name", () => {
  for (const text of ["operator-", "f(a - b)", "x:y", "all"]) {
    if (text !== "all") assert.deepEqual(read(text, [text]), { kind: "spot", at: name(text) }, text);
  }
});

test("what cannot be understood is told in words", () => {
  for (const [text, words] of [
    ["59x", /no time .* no instruction .* and no name/], ["1.5", /a unit: 1\.5 ms/], ["2ms:1ms", /The end, 1ms, is not after the begin, 2ms/],
    ["2K:1K", /is not after/], [":+1ms", /where it begins/], ["1ms:+", /how long/], ["1ms:+0ms", /above 0/], ["1ms:+main", /above 0/], ["1ms:5zz", /no name/],
  ] as const) {
    const told = read(text);
    assert.ok(told.kind === "error" && words.test(told.text), `${text}: ${JSON.stringify(told, (_, v: unknown) => (typeof v === "bigint" ? String(v) : v))}`);
  }
});
