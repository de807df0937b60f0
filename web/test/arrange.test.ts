// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { AS_THEY_COME, inOrder, moveLane, shown, toggled } from "../src/arrange.ts";
import { layoutLanes } from "../src/timeline/layout.ts";

const streams = ["a", "b", "c", "d"].map((name) => ({ name, protocol: name === "d" ? "itm" : "etm4" }));
const own = (name: string): string => (name === "b" ? "Big core" : name);

test("lanes are moved, pinned, hidden and filtered", () => {
  assert.deepEqual(inOrder(streams, AS_THEY_COME), [0, 1, 2, 3]);
  const moved = moveLane(streams, AS_THEY_COME, "c", -1);
  assert.deepEqual(inOrder(streams, moved), [0, 2, 1, 3]);
  assert.equal(moveLane(streams, AS_THEY_COME, "a", -1), AS_THEY_COME);
  assert.deepEqual(inOrder([...streams, { name: "new", protocol: "" }], moved), [0, 2, 1, 3, 4]);
  const pinned = { ...moved, pinned: ["d"] };
  assert.deepEqual(inOrder(streams, pinned), [3, 0, 2, 1]);
  assert.deepEqual(shown(streams, { ...pinned, hidden: ["a"] }, own), [3, 2, 1]);
  assert.deepEqual(shown(streams, { ...AS_THEY_COME, only: "BIG" }, own), [1]);
  assert.deepEqual(shown(streams, { ...AS_THEY_COME, only: "itm" }, own), [3]);
  assert.deepEqual(toggled(["a"], "a"), []);
  assert.deepEqual(toggled(["a"], "b"), ["a", "b"]);
});

test("one to three lanes fill the window, more do not", () => {
  const shape = (lane: number, depth = 20): { lane: number; open: boolean; full: boolean; depth: number } => ({ lane, open: true, full: false, depth });
  const one = layoutLanes([shape(7)], 800);
  assert.ok(one.height > 780 && one.height <= 800, String(one.height));
  assert.equal(one.boxes[0]!.lane, 7);
  assert.ok(one.boxes[0]!.stack.h >= 20 * 15, "all levels, as there is room");
  const three = layoutLanes([shape(0, 3), shape(1, 0), shape(2, 2)], 700);
  assert.ok(three.height > 660 && three.height <= 700, String(three.height));
  const four = layoutLanes([0, 1, 2, 3].map((i) => shape(i, 2)), 2000);
  assert.ok(four.height < 600);
  assert.ok(layoutLanes([shape(0), shape(1), shape(2)], 100).height > 300, "they scroll where there is no room");
});
