// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import {
  centre, clamp, MIN_SPAN, niceStep, pan, ruler, span, tickLabel, toPixel, toUnit, whole, zoom,
  type Extent, type View,
} from "../src/base/scale.ts";
import { generator } from "./random.ts";

const extent: Extent = { first: 0, last: 1e9 };
const view: View = { axis: "insn", from: 1000, to: 3000 };

test("pixels and units are each other's inverse", () => {
  assert.equal(toPixel(view, 500, 2000), 250);
  assert.equal(toUnit(view, 500, 250), 2000);
});

test("zooming keeps the anchor where it is", () => {
  const before = toPixel(view, 800, 1700);
  const after = zoom(view, 0.5, 1700, extent);
  assert.ok(Math.abs(toPixel(after, 800, 1700) - before) < 1e-6);
  assert.equal(span(after), 1000);
});

test("zooming ends at single instructions and at the whole trace", () => {
  let v = view;
  for (let i = 0; i < 60; i++) v = zoom(v, 0.5, 2000, extent);
  assert.equal(span(v), MIN_SPAN);
  for (let i = 0; i < 80; i++) v = zoom(v, 2, 2000, extent);
  assert.ok(span(v) <= 1.5e9 && span(v) >= 1e9);
});

test("however it is moved, a part of the trace stays in sight", () => {
  const { random, seed } = generator();
  for (let round = 0; round < 2000; round++) {
    const last = Math.floor(2 ** (random() * 50)) + 1;
    const e = { first: 0, last };
    let v: View = whole("insn", e);
    for (let i = 0; i < 12; i++) {
      const choice = random();
      if (choice < 0.4) v = zoom(v, 2 ** (random() * 12 - 6), random() * last, e);
      else if (choice < 0.8) v = pan(v, random() * 40 - 20, e);
      else v = centre(v, (random() * 3 - 1) * last, e);
      const where = `seed ${seed} round ${round}: ${v.from}..${v.to} of ${last}`;
      assert.ok(v.to > v.from, where);
      assert.ok(span(v) >= MIN_SPAN * 0.999, where);
      assert.ok(v.from < last && v.to > 0, where);
    }
  }
});

test("clamping what is already fine changes nothing", () => {
  assert.deepEqual(clamp(view, extent), view);
});

test("steps of the ruler are 1, 2 or 5 times a power of ten", () => {
  assert.deepEqual([0.3, 1, 1.2, 3, 7, 11, 490, 501].map(niceStep), [0.5, 1, 2, 5, 10, 20, 500, 1000]);
});

test("labels of the ruler tell neighbours apart and keep their distance", () => {
  const { random, seed } = generator();
  for (let round = 0; round < 500; round++) {
    const wide = 10 ** (1 + random() * 9);
    const from = random() * 1e10;
    for (const [axis, ns] of [["insn", false], ["time", true], ["time", false]] as const) {
      const v: View = { axis, from, to: from + wide };
      const labelled = ruler(v, 1200, 100, ns).ticks.filter((t) => t.label !== "");
      const where = `seed ${seed}: ${axis} ${from} + ${wide}: ${labelled.map((t) => t.label)}`;
      assert.ok(labelled.length >= 1 && labelled.length <= 15, where);
      assert.equal(new Set(labelled.map((t) => t.label)).size, labelled.length, where);
    }
  }
});

test("labels choose a readable unit", () => {
  assert.equal(tickLabel(0, 10, false), "0");
  assert.equal(tickLabel(200e6, 100e6, false), "200 M");
  assert.equal(tickLabel(100.03e6, 10000, false), "100.03 M");
  assert.equal(tickLabel(100030490, 2, false), "100,030,490");
  assert.equal(tickLabel(1200, 200, false), "1.2 k");
  assert.equal(tickLabel(1.2e9, 2e8, true), "1.2 s");
  assert.equal(tickLabel(30500, 500, true), "30.5 µs");
  assert.equal(tickLabel(124147748, 2, true), "124,147,748 ns");
  assert.equal(tickLabel(2130138.9e6, 1e5, true), "2,130.1389 s");
});

test("long numbers of the ruler are distances from a round one, exact of whatever size", () => {
  const told = (from: number, to: number, origin: bigint): [string, string[]] => {
    const { base, ticks } = ruler({ axis: "time", from, to }, 1000, 200, true, origin);
    return [base, ticks.map((t) => t.label).filter((l) => l !== "")];
  };
  assert.deepEqual(told(0, 1000, 0n), ["", ["0 s", "200 ns", "400 ns", "600 ns", "800 ns", "1.0 µs"]]);
  assert.deepEqual(told(124147000, 124147010, 0n)[0], "124.14 ms");
  assert.deepEqual(told(0, 1000, 2n ** 60n), ["1,152,921,504.606 s",
    ["+847.0 µs", "+847.2 µs", "+847.4 µs", "+847.6 µs", "+847.8 µs", "+848.0 µs"]]);
  assert.deepEqual(told(5e9, 5e9 + 1000, -(5n * 10n ** 9n)), told(0, 1000, 0n), "it counts from its zero");
});
