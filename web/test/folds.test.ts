// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { between, flat, joined, longest, unflat, type Fold } from "../src/base/folds.ts";
import { clamp, pan, place, span, toPixel, toUnit, whole, windows, zoom, type Extent, type View } from "../src/base/scale.ts";
import { generator } from "./random.ts";

const WIDTH = 1200;

/** Any folds of a trace, and a view of it. */
function any(random: () => number): { extent: Extent; folds: Fold[]; view: View } {
  const last = 1000 + Math.floor(2 ** (random() * 45));
  const edges = [...new Set(Array.from({ length: 2 * Math.floor(random() * 12) + 2 }, () => Math.floor(random() * last)))].sort((a, b) => a - b);
  const folds: Fold[] = [];
  for (let i = 0; i + 1 < edges.length; i += 2) folds.push({ from: edges[i]!, to: edges[i + 1]! });
  const extent = { first: 0, last };
  let view = whole("time", extent, folds);
  for (let i = 0; i < 4; i++) view = random() < 0.5 ? zoom(view, 2 ** (4 * random() - 3), random() * last, extent) : pan(view, random() - 0.5, extent);
  return { extent, folds, view };
}

test("the flat axis goes on without the folds, in the same order", () => {
  const { random, seed } = generator();
  for (let round = 0; round < 500; round++) {
    const { extent, folds } = any(random);
    let before = -Infinity;
    for (let i = 0; i <= 50; i++) {
      const at = (extent.last * i) / 50;
      const there = flat(folds, at);
      assert.ok(there >= before, `seed ${seed}`);
      before = there;
      const inside = folds.find((f) => f.from < at && at <= f.to);
      assert.ok(Math.abs(unflat(folds, there) - (inside ? inside.from : at)) < 1e-3 + extent.last * 1e-14, `seed ${seed}: ${at}`);
    }
  }
});

test("windows fill the width, and hold all that is not folded", () => {
  const { random, seed } = generator();
  for (let round = 0; round < 500; round++) {
    const { view, folds } = any(random);
    const all = windows(view, WIDTH);
    let x = 0;
    for (const part of all) {
      assert.equal(part.x, x, `seed ${seed} round ${round}`);
      x += part.width;
      assert.equal(part.view.folds, undefined);
      assert.ok(!folds.some((f) => f.from < part.view.to && f.to > part.view.from), `seed ${seed}`);
      // The same place by the window and by the view, to the rounding of the window's edges.
      const at = part.view.from + random() * span(part.view);
      assert.ok(Math.abs(part.x + toPixel(part.view, part.width, at) - toPixel(view, WIDTH, at)) <= 1, `seed ${seed}`);
    }
    assert.equal(x, WIDTH, `seed ${seed} round ${round}`);
  }
});

test("pixels and units are each other's inverse, and moves keep their promises, with any folds", () => {
  const { random, seed } = generator();
  for (let round = 0; round < 1000; round++) {
    const { extent, view, folds } = any(random);
    assert.equal(view.folds, folds);
    const x = random() * WIDTH;
    const at = toUnit(view, WIDTH, x);
    const near = (a: number, b: number, what: string): void => assert.ok(Math.abs(a - b) < 0.02, `${what}: ${a} and ${b}, seed ${seed} round ${round}`);
    near(toPixel(view, WIDTH, at), x, "there and back");
    const again = clamp(view, extent);
    near(toPixel(again, WIDTH, at), x, "clamp is idempotent");
    assert.ok(span(view) > 0);
    // A place in the middle of the flat trace stays under the pointer, as long as the view stays within the trace.
    const middle = unflat(folds, flat(folds, extent.last) / 2);
    const centred = place(view, middle, 0.5, extent);
    near(toPixel(centred, WIDTH, middle), WIDTH / 2, "centred");
    if (span(centred) > 64) near(toPixel(zoom(centred, 0.5, middle, extent), WIDTH, middle), WIDTH / 2, "zoomed");
  }
});

test("what is between, joined, and longest", () => {
  const folds = [{ from: 10, to: 20 }, { from: 30, to: 50 }];
  assert.deepEqual(between(folds, 0, 60), [{ from: 0, to: 10 }, { from: 20, to: 30 }, { from: 50, to: 60 }]);
  assert.deepEqual(between(folds, 12, 45), [{ from: 20, to: 30 }]);
  assert.deepEqual(between(folds, 12, 18), []);
  assert.deepEqual(joined(folds, [{ from: 19, to: 25 }, { from: 52, to: 60 }], 2), [{ from: 10, to: 25 }, { from: 30, to: 60 }]);
  assert.deepEqual(longest(folds, 1), [{ from: 30, to: 50 }]);
});
