// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { alone, AS_THEY_COME, moveNode, pathsOf, toggled, treeOf, visible, type Arrangement, type Node, type Told } from "../src/view/arrange.ts";
import { TILE_BUCKETS, type Columns } from "../src/data/tile.ts";
import { layoutLanes } from "../src/timeline/layout.ts";
import { merged } from "../src/timeline/merge.ts";

const streams = ["a", "b", "c", "d"].map((name) => ({ name, protocol: name === "d" ? "itm" : "etm4", core: "" }));
const core: Record<string, readonly string[]> = { a: ["big"], b: ["big"], c: ["small", "core 0"] };
const told: Told = { rig: "board", called: (name) => (name === "b" ? "Boot core" : name), path: (name) => core[name] ?? [] };
const lines = (a: Arrangement): string[] => visible(treeOf(streams, a, told)).map((n) => `${n.level} ${n.id}`);
const find = (a: Arrangement, id: string): Node => visible(treeOf(streams, a, told)).find((n) => n.id === id)!;

test("lanes are a tree that is folded, moved, pinned, hidden and filtered", () => {
  assert.deepEqual(lines(AS_THEY_COME), ["1 /", "2 /big", "3 a", "3 b", "2 /small", "3 /small/core 0", "4 c", "2 d"]);
  assert.deepEqual(visible(treeOf(streams.slice(3), AS_THEY_COME, told)).map((n) => n.id), ["d"], "what is alone needs no rig");
  assert.equal(find(AS_THEY_COME, "b").name, "Boot core");
  assert.equal(find(AS_THEY_COME, "/").name, "board");
  const folded = { ...AS_THEY_COME, folded: ["/big"] };
  assert.deepEqual(lines(folded).slice(0, 3), ["1 /", "2 /big", "2 /small"]);
  assert.deepEqual(find(folded, "/big").lanes, [0, 1]);
  // Among siblings alone.
  assert.equal(moveNode(find(AS_THEY_COME, "c"), AS_THEY_COME, -1), AS_THEY_COME);
  const moved = moveNode(find(AS_THEY_COME, "d"), AS_THEY_COME, -1);
  assert.deepEqual(lines(moved).slice(2), ["3 a", "3 b", "2 d", "2 /small", "3 /small/core 0", "4 c"]);
  assert.deepEqual(lines(moveNode(find(moved, "b"), moved, -1)).slice(1, 5), ["2 /big", "3 b", "3 a", "2 d"]);
  const pinned = { ...AS_THEY_COME, pinned: ["c", "/big"] };
  assert.deepEqual(lines(pinned), ["1 c", "1 /big", "2 a", "2 b", "1 /", "2 d"]);
  assert.deepEqual(lines(moveNode(find(pinned, "/big"), pinned, -1)).slice(0, 4), ["1 /big", "2 a", "2 b", "1 c"]);
  assert.deepEqual(lines({ ...AS_THEY_COME, hidden: ["a", "b"] }).slice(1, 3), ["2 /small", "3 /small/core 0"]);
  for (const [only, left] of [["BOOT", "b"], ["itm", "d"], ["core 0", "c"]] as const) {
    assert.deepEqual(visible(treeOf(streams, { ...AS_THEY_COME, only }, told)).flatMap((n) => (n.lane === undefined ? [] : [n.id])), [left]);
  }
  const one = alone(streams, AS_THEY_COME, find(AS_THEY_COME, "/big"));
  assert.deepEqual(one.hidden, ["c", "d"]);
  assert.deepEqual(alone(streams, one, find(one, "/big")).hidden, []);
  assert.deepEqual(toggled(["a"], "a"), []);
});

test("lanes of one kind are in the order of their names, whichever came first", () => {
  const order = (...names: string[]): string[] =>
    visible(treeOf(names.map((name) => ({ name, protocol: "etm4", core: "" })), AS_THEY_COME, { ...told, called: (n) => n, path: () => [] })).map((n) => n.id).slice(1);
  assert.deepEqual(order("cs.2e", "cs.1a", "cs.10", "cs.09", "cs.20"), ["cs.09", "cs.10", "cs.1a", "cs.20", "cs.2e"]);
  assert.deepEqual(order("pt.10", "thread.4711", "pt.9", "events.cycles", "thread.99"), ["pt.9", "pt.10", "thread.99", "thread.4711", "events.cycles"]);
  assert.deepEqual(order("di.1.2", "di.0.10", "di.0.9"), ["di.0.9", "di.0.10", "di.1.2"]);
});

test("what the trace tells makes a group where it tells lanes apart; people's word comes first", () => {
  const paths = (said: Record<string, string>, usual: readonly string[]): string[][] =>
    [...pathsOf(streams, (name) => said[name], (s) => usual[streams.indexOf(s as typeof streams[0])]!).values()].map((p) => [...p]);
  assert.deepEqual(paths({}, ["A53", "A53", "A53", "A53"]), [[], [], [], []]);
  assert.deepEqual(paths({}, ["A53", "A53", "A72", ""]), [["A53"], ["A53"], [], []]);
  assert.deepEqual(paths({ c: " cluster 1/core 0 ", d: "/" }, ["A53", "A53", "A53", ""]), [["A53"], ["A53"], ["cluster 1", "core 0"], []]);
});

function columns(own: Partial<Record<keyof Columns, readonly number[]>>): Columns {
  const of = (name: keyof Columns, each = 1): number[] => Object.assign(new Array<number>(TILE_BUCKETS * each).fill(0), own[name]);
  return {
    insns: Float64Array.from(of("insns")), coverage: Uint8Array.from(of("coverage")), fn: Uint32Array.from(of("fn")), share: Uint8Array.from(of("share")),
    fn2: Uint32Array.from(of("fn2")), share2: Uint8Array.from(of("share2")), distinct: Uint8Array.from(of("distinct")), page: Float64Array.from(of("page")),
    privilege: Uint8Array.from(of("privilege", 4)), branches: Uint8Array.from(of("branches")), events: Uint16Array.from(of("events")),
    eventCount: Uint32Array.from(of("eventCount")), flags: Uint8Array.from(of("flags")), depthMin: Uint8Array.from(of("depthMin")),
    depthMax: Uint8Array.from(of("depthMax")), lost: Uint8Array.from(of("lost")),
    switchedOut: Uint8Array.from(of("switchedOut")), breaks: [], behindFrom: Infinity,
  };
}

test("a folded group shows what most of its lanes run, as high as many of them run", () => {
  const one = columns({ insns: [100, 0, 10], coverage: [255, 0, 255], fn: [5, 0, 5], share: [255, 0, 255], flags: [0, 2, 0] });
  const two = columns({ insns: [300, 0, 0], coverage: [255, 0, 0], fn: [7, 0, 0], share: [200, 0, 0], fn2: [5, 0, 0], share2: [55, 0, 0], lost: [0, 200, 0] });
  const m = merged([one, two]);
  assert.deepEqual([...m.insns.slice(0, 3)], [400, 0, 10]);
  assert.deepEqual([...m.coverage.slice(0, 3)], [255, 0, 128]);
  assert.deepEqual([m.fn[0], m.share[0], m.fn2[0], m.share2[0]], [7, 150, 5, 105]);
  assert.deepEqual([...m.fn.slice(1, 3)], [0, 5]);
  assert.equal(m.flags[1], 2);
  assert.equal(m.lost[1], 100);
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
