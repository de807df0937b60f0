// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { LaneData } from "../src/data/lanedata.ts";
import { Later } from "../src/base/later.ts";
import { pace } from "../src/base/pace.ts";
import { SliceCache } from "../src/data/slices.ts";

/** A clock that is moved by hand. Node's own is not the same in all versions that the tests run with. */
function clock(t: TestContext): (ms: number) => void {
  const timers = new Map<number, { at: number; act: () => void }>();
  let now = 1e6;
  let made = 0;
  const set = (act: () => void, ms = 0): number => {
    timers.set(++made, { at: now + ms, act });
    return made;
  };
  t.mock.method(performance, "now", () => now);
  t.mock.method(globalThis, "setTimeout", set as unknown as typeof setTimeout);
  t.mock.method(globalThis, "clearTimeout", ((id: number) => { timers.delete(id); }) as unknown as typeof clearTimeout);
  return (ms) => {
    const until = now + ms;
    for (;;) {
      const [id, next] = [...timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [0, undefined];
      if (!next || next.at > until) break;
      timers.delete(id);
      now = next.at;
      next.act();
    }
    now = until;
  };
}

test("a sooner time takes the place of a later one, and it is done once", (t) => {
  const pass = clock(t);
  let done = 0;
  const later = new Later(() => { done++; });
  later.within(500);
  later.within(100);
  later.within(300);
  pass(99);
  assert.deepEqual([done, later.pending], [0, true]);
  pass(1);
  assert.deepEqual([done, later.pending], [1, false]);
  pass(1000);
  assert.equal(done, 1);
  later.within(10);
  later.cancel();
  pass(10);
  assert.equal(done, 1);
});

type Lanes = Pick<LaneData<string>, "want" | "clear">;

/** While the page rests: what only grew waits, a view that nothing is known of does not, and takes its turn. */
async function goesFirst(t: TestContext, lanes: Lanes, asked: string[]): Promise<void> {
  const pass = clock(t);
  const view = { axis: "insn", from: 1000, to: 2000 } as const;
  const far = { ...view, from: 100000, to: 101000 };
  const answer = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  lanes.want(["a"], view, 1, true);
  pass(120);
  await answer();
  assert.equal(asked.length, 1);
  pass(100000);
  pace.spend(70 * 3000);
  lanes.want(["a"], view, 2, true);
  pass(1000);
  await answer();
  assert.equal(asked.length, 1, "it only grew");
  lanes.want(["a"], far, 2, true);
  pass(120);
  await answer();
  assert.equal(asked.length, 2, "nothing of it is here");
  assert.match(asked[1]!, /from=99000&/);
  pass(100000);
  lanes.clear();
}

function answers(t: TestContext, body: unknown): string[] {
  const asked: string[] = [];
  t.mock.method(globalThis, "fetch", (url: unknown) => {
    asked.push(String(url));
    return Promise.resolve({ ok: true, status: 200, text: () => Promise.resolve(JSON.stringify(body)) });
  });
  return asked;
}

const trace = { id: "t", epoch: 0n };

test("lanes: what people look at does not wait for what only grew", async (t) => {
  await goesFirst(t, new LaneData(trace, "states", () => "", () => "told", () => {}), answers(t, { streams: { a: {} } }));
});

test("call stacks: what people look at does not wait for what only grew", async (t) => {
  await goesFirst(t, new SliceCache(trace, () => {}), answers(t, { streams: { a: { slices: [], truncated: false } } }));
});
