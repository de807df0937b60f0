// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { FLAG, isOff, offText, TILE_BUCKETS, type Break, type Columns, type Stripe } from "../src/data/tile.ts";
import { addBreaks, joinedSpans, untold, whole } from "../src/timeline/gaps.ts";

test("where nothing ran and nothing was lost is one stretch across the edge of a tile", () => {
  const columns = (empty: (b: number) => boolean): Columns => ({
    coverage: Uint8Array.from({ length: TILE_BUCKETS }, (_, b) => (empty(b) ? 0 : 200)), lost: new Uint8Array(TILE_BUCKETS),
    switchedOut: new Uint8Array(TILE_BUCKETS), behindFrom: Infinity,
  }) as unknown as Columns;
  const stripe = (first: number): Stripe => ({ first, bucket: 10, sealed: true, lanes: new Map() });
  const a = untold(stripe(0), columns((b) => b < 5 || b >= TILE_BUCKETS - 2 || b === 100));
  const b = untold(stripe(5120), columns((b) => b < 3));
  assert.deepEqual(a, [{ from: 0, to: 50, flags: 0 }, { from: 1000, to: 1010, flags: 0 }, { from: 5100, to: 5120, flags: 0 }]);
  assert.deepEqual(joinedSpans([...a, ...b], { first: 20, last: 9000 }), [{ from: 1000, to: 1010, flags: 0 }, { from: 5100, to: 5150, flags: 0 }]);
  const out = columns((b) => b >= 3 && b < 9);
  out.switchedOut.fill(255, 5, 7);
  const parts = [{ from: 30, to: 50, flags: 0 }, { from: 50, to: 70, flags: FLAG.switchedOut }, { from: 70, to: 90, flags: 0 }];
  assert.deepEqual(untold(stripe(0), out), parts);
  assert.deepEqual(joinedSpans(parts, { first: 0, last: 9000 }), parts);
  const lost = columns((b) => b === 7);
  lost.lost[7] = 90;
  assert.deepEqual(untold(stripe(0), lost), []);
});

test("a thread that is switched out loses nothing, and neither does a trace that is off", () => {
  for (const flags of [FLAG.off, FLAG.gap | FLAG.off, FLAG.switchedOut, FLAG.gap | FLAG.off | FLAG.switchedOut]) assert.ok(isOff(flags));
  for (const flags of [0, FLAG.gap, FLAG.gap | FLAG.switchedOut | FLAG.overflow]) assert.ok(!isOff(flags));
  assert.equal(offText(FLAG.gap | FLAG.off), "not traced");
  assert.equal(offText(FLAG.gap | FLAG.switchedOut), "switched out");
});

test("of how long a gap was and why nothing is told in half", () => {
  const wide = (text: string): number => text.length;
  assert.equal(whole("≤ 3.2 µs, overflow", 18, wide), "≤ 3.2 µs, overflow");
  assert.equal(whole("≤ 3.2 µs, overflow", 17, wide), "≤ 3.2 µs");
  assert.equal(whole("≤ 3.2 µs, overflow", 8, wide), "≤ 3.2 µs");
  assert.equal(whole("≤ 3.2 µs, overflow", 7, wide), "");
});

test("each gap in front of one instruction is kept, and one that lies in two tiles once", () => {
  const gap = (position: number, from: number, to: number): Break => ({ position, from, to, flags: 0 });
  const [a, b, c, d] = [gap(0, 10, 20), gap(0, 20, 40), gap(0, 40, 50), gap(7, 60, 70)];
  const all: Break[] = [];
  for (const tile of [[a, b], [b], [b, c, d], [d]]) addBreaks(all, tile);
  assert.deepEqual(all, [a, b, c, d]);
});
