// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { bars, ran, tail } from "../src/data/timing.ts";
import { generator } from "./random.ts";

test("every length is in one bar, bars lie side by side, and a tail is the longest of them", () => {
  const { random, seed } = generator();
  for (let round = 0; round < 500; round++) {
    const lengths = new Map<number, number>();
    const most = 2 ** (random() * 30);
    for (let i = Math.floor(random() * 200); i >= 0; i--) lengths.set(Math.floor(random() ** 4 * most), 1 + Math.floor(random() * 50));
    const all = [...lengths].sort(([a], [b]) => a - b);
    const told = bars(all, 48);
    assert.ok(told.length >= 1 && told.length <= 48, `seed ${seed}`);
    told.forEach((bar, i) => {
      assert.ok(bar.to > bar.from && (i === 0 || told[i - 1]!.to === bar.from), `seed ${seed}`);
      assert.equal(bar.count, all.filter(([n]) => n >= bar.from && n < bar.to).reduce((sum, [, n]) => sum + n, 0), `seed ${seed}`);
    });
    const sum = (bars_: typeof told): number => bars_.reduce((n, bar) => n + bar.count, 0);
    assert.equal(sum(told), all.reduce((n, [, count]) => n + count, 0), `seed ${seed}`);
    const first = tail(told, 0.1);
    assert.ok(sum(told.slice(first)) >= 0.1 * sum(told) && (first === told.length - 1 || sum(told.slice(first + 1)) < 0.1 * sum(told)), `seed ${seed}`);
  }
  assert.deepEqual(bars([], 48), []);
  assert.deepEqual(bars([[5, 3]], 48), [{ from: 5, to: 6, count: 3 }]);
});

test("a process runs on through changes of mode", () => {
  assert.deepEqual(ran([
    { from: 0, to: 10, name: "" }, { from: 10, to: 30, name: "a" }, { from: 30, to: 35, name: "a" }, { from: 35, to: 50, name: "b" },
    { from: 50, to: 60, name: "a" }]), [
    { name: "a", runs: 2, total: 35, longest: [10, 35] }, { name: "b", runs: 1, total: 15, longest: [35, 50] }]);
});
