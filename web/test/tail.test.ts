// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { nextRange } from "../src/panels/tail.ts";
import { generator } from "./random.ts";

test("ranges of a growing lane follow each other, and what is left out between them is told", () => {
  const { random, seed } = generator();
  let [upTo, edge, told] = [0, 0, 0];
  for (let i = 0; i < 1000; i++) {
    edge += Math.floor(2 ** (random() * 14));
    const { from, to, skipped } = nextRange(upTo, edge, 500);
    assert.equal(upTo + skipped, from, `seed ${seed}`);
    assert.ok(to === edge && to - from <= 500 && skipped >= 0, `seed ${seed}`);
    told += skipped + to - from;
    upTo = to;
  }
  assert.equal(told, edge);
});
