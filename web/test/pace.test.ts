// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { changed } from "../src/data/live.ts";
import { readTraces } from "../src/data/model.ts";
import { Pace } from "../src/base/pace.ts";

test("whatever the answers' sizes, what is asked for by itself stays below 100 KB a second", () => {
  let seed = 1;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  let now = 0;
  const pace = new Pace(() => now);
  let bytes = 0;
  while (now < 60000) {
    if (pace.wait === 0) {
      const answer = 200 + random() ** 4 * 90000;
      bytes += answer;
      pace.spend(answer);
    }
    now += 16;
  }
  assert.ok(bytes / 60000 < 100 && bytes / 60000 > 50, `${bytes / 60000} KB/s`);
});

test("what was fetched by hand is soon forgotten", () => {
  let now = 0;
  const pace = new Pace(() => now);
  pace.spend(5e6);
  assert.ok(pace.wait <= 5000);
  now = 5000;
  assert.equal(pace.wait, 0);
});

test("changes of the list: what is new comes first, what is gone goes, all else keeps its place", () => {
  const known = readTraces([{ id: "c", revision: 1 }, { id: "b", revision: 4 }, { id: "a", revision: 2 }]);
  const now = changed(known, { traces: [{ id: "d", revision: 1 }, { id: "b", revision: 5 }], gone: ["a"] });
  assert.deepEqual(now.map((t) => [t.id, t.revision]), [["d", 1], ["c", 1], ["b", 5]]);
  // One that was replaced is gone, and new.
  assert.deepEqual(changed(known, { traces: [{ id: "a", revision: 9 }], gone: ["a"] }).map((t) => [t.id, t.revision]), [["a", 9], ["c", 1], ["b", 4]]);
});
