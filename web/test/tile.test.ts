// SPDX-License-Identifier: MIT
import { create, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import test from "node:test";
import { TileSchema, Unit } from "../gen/tracelake/v1/ranges_pb";
import type { View } from "../src/base/scale.ts";
import {
  bucketWidth, children, decodeStripe, levelFor, MAX_LEVEL, parent, TILE_BUCKETS, tileKey,
  tileRange, tileWidth, type Stripe, type TileId,
} from "../src/data/tile.ts";
import { needed, pieces, stripesOf } from "../src/timeline/scene.ts";
import { generator } from "./random.ts";

test("widths grow by four a level", () => {
  assert.equal(bucketWidth(0, 0), 1);
  assert.equal(bucketWidth(10, 0), 1024);
  assert.equal(bucketWidth(0, 5), 1024);
  assert.equal(tileWidth(0, 1), 2048);
});

test("buckets of the chosen level are one to four pixels wide", () => {
  const { random, seed } = generator();
  for (let i = 0; i < 5000; i++) {
    const base = Math.floor(random() * 16);
    const upp = 2 ** (base + random() * 30);
    const pixels = bucketWidth(base, levelFor(upp, base)) / upp;
    assert.ok(pixels >= 1 - 1e-6 && pixels < 4.0001, `seed ${seed}: base ${base}, ${upp}: ${pixels}`);
  }
  assert.equal(levelFor(0.001, 0), 0);
  assert.equal(levelFor(2 ** 100, 0), MAX_LEVEL);
});

test("a view needs few tiles, and they cover it", () => {
  const { random, seed } = generator();
  for (let i = 0; i < 3000; i++) {
    const last = 2 ** (random() * 40);
    const from = random() * last;
    const view: View = { axis: "insn", from, to: from + 8 + random() * (last - from) };
    const extent = { first: 0, last };
    const need = needed(view, 1920, extent, 0, [0]);
    const where = `seed ${seed}: ${from}..${view.to} of ${last}`;
    assert.ok(need.tiles.length <= 6, `${need.tiles.length} tiles, ${where}`);
    const width = tileWidth(0, need.level);
    const indices = need.tiles.map((t) => t.index).sort((a, b) => a - b);
    assert.ok(indices[0]! * width <= from, where);
    assert.ok((indices[indices.length - 1]! + 1) * width >= Math.min(view.to, last), where);
  }
});

test("beyond the trace there is nothing to ask for", () => {
  const view: View = { axis: "insn", from: 2000, to: 3000 };
  const [first, last] = tileRange(view, { first: 0, last: 1000 }, 0, 0);
  assert.ok(last < first);
});

test("parents and children fit", () => {
  const id: TileId = { axis: "insn", level: 3, index: 77, stripe: 0 };
  for (const child of children(id)) assert.deepEqual(parent(child), id);
  assert.equal(parent(id, 2).index, 4);
});

test("lanes come in stripes of sixteen", () => {
  assert.deepEqual(stripesOf(0, 3), [0]);
  assert.deepEqual(stripesOf(15, 16), [0, 1]);
  assert.deepEqual(stripesOf(40, 41), [2]);
});

function stripe(): Stripe {
  return { first: 0, bucket: 1, sealed: true, lanes: new Map() };
}

test("stand-ins: the nearest ancestor below, descendants above, the tile itself alone", () => {
  const id: TileId = { axis: "insn", level: 2, index: 5, stripe: 0 };
  const cache = new Map<string, Stripe>();
  const source = { peek: (i: TileId) => cache.get(tileKey(i)) };
  assert.deepEqual(pieces(source, id, 0), []);
  const far = stripe();
  cache.set(tileKey(parent(id, 3)), far);
  assert.deepEqual(pieces(source, id, 0).map((p) => p.stripe), [far]);
  const near = stripe();
  cache.set(tileKey(parent(id)), near);
  const child = stripe();
  cache.set(tileKey(children(id)[2]!), child);
  const grandchild = stripe();
  cache.set(tileKey(children(children(id)[0]!)[1]!), grandchild);
  const got = pieces(source, id, 0);
  assert.deepEqual(got.map((p) => p.stripe), [near, grandchild, child]);
  assert.equal(got[2]!.from, children(id)[2]!.index * tileWidth(0, 1));
  assert.equal(got[2]!.to - got[2]!.from, tileWidth(0, 1));
  const own = stripe();
  cache.set(tileKey(id), own);
  assert.deepEqual(pieces(source, id, 0).map((p) => p.stripe), [own]);
});

test("a stripe is decoded, short columns read as zero", () => {
  const bytes = toBinary(TileSchema, create(TileSchema, {
    level: 1, index: 3n, bucket: 4n, first: 6144n, sealed: true,
    lanes: [{
      lane: 2, insns: [4n, 3n], function: [7, 0], share: Uint8Array.of(255), page: [0xffffff8000123n],
      flags: Uint8Array.of(0, 1), eventMask: [1], eventCount: [5],
    }],
  }));
  const s = decodeStripe(bytes);
  assert.deepEqual([s.first, s.bucket, s.sealed], [6144, 4, true]);
  const c = s.lanes.get(2)!;
  assert.equal(c.insns.length, TILE_BUCKETS);
  assert.deepEqual([...c.insns.subarray(0, 3)], [4, 3, 0]);
  assert.equal(c.page[0], 0xffffff8000123);
  assert.deepEqual([c.fn[0], c.flags[1], c.events[0], c.eventCount[0]], [7, 1, 1, 5]);
  // Nothing said of coverage: what has instructions is covered.
  assert.deepEqual([...c.coverage.subarray(0, 3)], [255, 255, 0]);
});

test("64-bit places are exact, in every form of an integer", () => {
  const begin = (1n << 63n) + 12345n;
  const s = decodeStripe(toBinary(TileSchema, create(TileSchema, {
    axis: Unit.TIME, bucket: 1n, first: begin - 1n, lanes: [{ lane: 300, page: [(1n << 52n) - 1n, 127n, 128n, 0n],
      breaks: [{ position: (1n << 40n) + 1n, begin, to: begin + 7n, flags: 16 }] }],
  })), begin - 100n);
  assert.equal(s.first, 99);
  const c = s.lanes.get(300)!;
  assert.deepEqual(c.breaks, [{ position: 2 ** 40 + 1, from: 100, to: 107, flags: 16 }]);
  assert.deepEqual([...c.page.subarray(0, 4)], [2 ** 52 - 1, 127, 128, 0]);
});

test("any bytes are a tile or throw", () => {
  const { random, seed } = generator();
  const whole = toBinary(TileSchema, create(TileSchema, {
    bucket: 4n, first: 6144n, lanes: [{ lane: 2, insns: [4n, 3n], share: Uint8Array.of(255), breaks: [{ position: 9n }] }] }));
  for (let i = 0; i < 20000; i++) {
    const bytes = whole.slice(0, Math.floor(random() * (whole.length + 1)));
    if (i % 2 === 1 && bytes.length > 0) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    try {
      decodeStripe(bytes);
    } catch (error) {
      assert.ok(error instanceof RangeError, `seed ${seed}: ${String(error)}`);
    }
  }
});

test("bytes that are no tile throw, and longer columns are cut", () => {
  assert.throws(() => decodeStripe(Uint8Array.of(0x42, 0x7f, 0x01)));
  const bytes = toBinary(TileSchema, create(TileSchema, {
    bucket: 1n, lanes: [{ lane: 0, flags: new Uint8Array(5000), function: Array(5000).fill(1) }],
  }));
  assert.equal(decodeStripe(bytes).lanes.get(0)!.fn.length, TILE_BUCKETS);
});
