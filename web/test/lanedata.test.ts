// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { slices } from "../src/data/api.ts";
import { InsnCache } from "../src/data/insns.ts";
import { contextName, LaneData, readCounters, readLog, readStates, sourceName } from "../src/data/lanedata.ts";
import { columnPoints, niceMost, rateText } from "../src/timeline/sublanes.ts";

test("what lanes show is read, times from the epoch on", () => {
  const log = readLog({ more: true, entries: [
    { at: 3, last: 9, time: "18446744073709551615", source: "itm", channel: "3", records: 7, text: "hello" },
    { at: 10, last: 10, source: "uart", records: 1, value: "0x7f", size: 1 }] }, 18446744073709551600n);
  assert.equal(log.more, true);
  assert.deepEqual(log.entries.map((e) => [sourceName(e), e.text, e.isText, e.time]),
    [["itm 3", "hello", true, 15], ["uart", "0x7f (1 B)", false, undefined]]);
  const states = readStates({ sampled: false, runs: [{ from: 0, to: 5, mode: "el0.ns.a64", context: "0x100", vmid: "0x2" },
    { from: 5, to: 6, mixed: true }] }, 0n);
  assert.deepEqual(states.runs.map((r) => [contextName(r), r.mixed]), [["process 0x100, machine 0x2", false], ["", true]]);
});

test("what hardware reports is no text that a program wrote", () => {
  const log = readLog({ entries: [
    { at: 0, last: 0, source: "dwt", text: "data write 0 20000100 00000001 0000000008000550 ticks <SysTick_Handler>" },
    { at: 1, last: 1, source: "dwt", text: "data read 1 20000104 3fc00000 0000000000000000 speed = 1.5 (float)" },
    { at: 2, last: 2, source: "dwt", text: "pc 0000000008000274 <task_radio>" },
    { at: 3, last: 3, source: "dwt", text: "sleep" },
    { at: 4, last: 4, source: "itm", channel: "0", text: "sleep" }] }, 0n);
  assert.deepEqual(log.entries.map((e) => [e.text, e.isText]), [
    ["write ticks = 0x1, SysTick_Handler", false], ["read speed = 1.5 (float)", false], ["at task_radio", false],
    ["sleep", false], ["sleep", true]]);
});

test("counters become rates, unknown where nothing is known", () => {
  const c = readCounters({ from: 0, to: 40, sampled: true, insns: [100, 50], time: [50, 0], cycles: [30, 0], cycle_insns: [20, 0] }, 0n);
  assert.deepEqual(c.rate, [2, NaN]);
  assert.deepEqual(c.cpi, [1.5, NaN]);
  const points = columnPoints(c, c.rate, { axis: "insn", from: 10, to: 30 }, 200);
  assert.deepEqual(points.map((p) => [p.x0, p.x1]), [[-100, 100], [100, 300]]);
  assert.equal(rateText(0.8, true), "800 M/s");
  assert.equal(rateText(2, false), "2.00 per tick");
  assert.deepEqual([0, 0.9, 1, 3, 7000].map(niceMost), [1, 1, 1, 5, 10000]);
});

test("what begins before a narrow view and may reach into it is asked for, and asked for once", async (t) => {
  const asked: string[] = [];
  t.mock.method(globalThis, "fetch", (url: unknown) => {
    asked.push(String(url));
    return Promise.resolve(Response.json({ streams: { stm: { entries: [{ at: 990, last: 1010, source: "stm", text: "begun" }] } } }));
  });
  const view = { axis: "insn", from: 1000, to: 1012 } as const;
  let told = (): void => {};
  const come = new Promise<void>((done) => { told = done; });
  const log = new LaneData({ id: "t", epoch: 0n }, "log", () => "", (x) => readLog(x, 0n), told, 256);
  log.want(["stm"], view, 1, false);
  await come;
  assert.match(asked[0]!, /from=744&to=1268$/);
  assert.deepEqual(log.get("stm", view)!.entries.map((e) => e.text), ["begun"]);
  log.want(["stm"], { ...view, from: 1100, to: 1112 }, 1, false);
  assert.equal(log.busy, false);
});

test("what a panel and a lane want in one frame is asked for together, and then nothing more", async (t) => {
  const asked: string[] = [];
  t.mock.method(globalThis, "fetch", (url: unknown) => {
    asked.push(new URL(String(url), "http://x").searchParams.get("streams")!);
    return Promise.resolve(Response.json({ streams: { core: { entries: [] }, stm: { entries: [] }, uart: { entries: [] } } }));
  });
  let told = (): void => {};
  const log = new LaneData({ id: "t", epoch: 0n }, "log", () => "", (x) => readLog(x, 0n), () => told(), 256);
  const view = { axis: "time", from: 0, to: 5000 } as const;
  const frame = (): void => {
    log.want(["core", "stm", "uart"], view, 1, false); // the panel
    log.want(["stm", "uart"], view, 1, false); // the lanes
  };
  const come = new Promise<void>((done) => { told = done; });
  frame();
  await come;
  frame();
  assert.deepEqual(asked, ["core,stm,uart"]);
  assert.equal(log.busy, false);
});

test("instructions that two places show are loaded for both", async () => {
  const asked: number[] = [];
  const insns = new InsnCache({ id: "t", epoch: 0n }, "s", () => {}, (from, count, signal) => new Promise((done, fail) => {
    asked.push(from);
    signal.addEventListener("abort", () => fail(new Error("aborted")));
    setTimeout(() => done(Array.from({ length: count }, (_, i) => ({ insn: from + i }) as never)), 1);
  }));
  for (let frames = 0; frames < 4; frames++) {
    insns.want(0, 10, 10000); // the list around the cursor
    insns.want(5000, 5010, 10000); // the lane, far from it
    await new Promise((done) => { setTimeout(done, frames === 0 ? 0 : 5); });
  }
  assert.deepEqual(asked, [0, 4864]);
  assert.ok(insns.get(0) && insns.get(5005) && !insns.busy);
});

test("instructions of many lanes are asked for a few in each frame", async () => {
  const asked: string[] = [];
  let changes = 0;
  const lanes = Array.from({ length: 5 }, (_, i) => new InsnCache({ id: "t", epoch: 0n }, `cs.${i}`, () => { changes++; }, (_from, count) => {
    asked.push(`cs.${i}`);
    return Promise.resolve(Array.from({ length: count }, (_, k) => ({ insn: k }) as never));
  }));
  for (const n of [2, 4, 5, 5]) {
    changes = 0;
    for (const lane of lanes) lane.want(0, 10, 10000);
    assert.equal(asked.length, n);
    assert.equal(changes > 0, n < 5, "another frame is drawn for those that wait");
    await new Promise((done) => { setTimeout(done, 0); });
  }
  assert.deepEqual(asked, lanes.map((lane) => lane.stream));
  assert.ok(lanes.every((lane) => lane.get(3) && !lane.busy));
});

test("of many streams as many are asked for at once as the server answers", async (t) => {
  const asked: number[] = [];
  t.mock.method(globalThis, "fetch", (url: unknown) => {
    const names = new URL(String(url), "http://x").searchParams.get("streams")!.split(",");
    asked.push(names.length);
    return Promise.resolve(Response.json({ streams: Object.fromEntries(names.map((n) => [n, { slices: [{ depth: 0, from: 1, to: 2, name: `f of ${n}` }] }])) }));
  });
  const streams = Array.from({ length: 40 }, (_, i) => `cs.${i + 10}`);
  const got = await slices({ id: "t", epoch: 0n }, streams, "insn", 0, 10);
  assert.deepEqual(asked, [16, 16, 8]);
  assert.deepEqual(streams.map((s) => got.get(s)?.slices[0]?.name), streams.map((s) => `f of ${s}`));
});
