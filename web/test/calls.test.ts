// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";
import { layout, type TreeNode } from "../src/data/calls.ts";

const node = (depth: number, total: number): TreeNode => ({ depth, total, name: "", self: 0, calls: 0 });

test("a node lies in its parent, behind its siblings", () => {
  const boxes = layout([node(0, 60), node(1, 30), node(2, 10), node(1, 20), node(0, 40), node(1, 40)], 100);
  assert.deepEqual(boxes.map((b) => b.parent), [-1, 0, 1, 0, -1, 4]);
  const near = (a: number, b: number): void => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`);
  [0, 0, 0, 0.3, 0.6, 0.6].forEach((left, i) => near(boxes[i]!.left, left));
  [0.6, 0.3, 0.1, 0.2, 0.4, 0.4].forEach((width, i) => near(boxes[i]!.width, width));
});

test("nothing has no width", () => {
  assert.deepEqual(layout([], 0), []);
  assert.equal(layout([node(0, 0)], 0)[0]!.width, 0);
});
