// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { contextName, readStates } from "../src/data/lanedata.ts";
import { byUse, filesAt, missingFrom, readMissing, whoMapped } from "../src/data/missing.ts";
import type { Hit } from "../src/data/model.ts";

const hit = (pc: string, stream: string): Hit => ({ pc, stream, insn: 0, time: undefined, byte: 0, text: "" });
const place = (context: string, name: string, address = "0x401000"): unknown => ({ address, length: "0x1000", context, name });
const files = readMissing([
  { file: "build-id:11", path: "/bin/walk", build_id: "11", there: false, places: [place("0x8ca", "walk")], more: 0 },
  { file: "build-id:22", path: "/bin/pair", build_id: "22", there: false, places: [place("0x866", "pair")], more: 0 },
  { file: "build-id:33", path: "/lib/x.so", build_id: "33", there: true, places: [place("0x866", "pair", "0x7000")], more: 0 },
  { file: "build-id:44", path: "[kernel]", build_id: "44", there: false, places: [{ address: "0xffffffff81000000" }], more: 0 },
]);

test("files that are not there, with who mapped them", () => {
  assert.deepEqual(files.map((f) => f.path), ["/bin/walk", "/bin/pair", "[kernel]"]);
  assert.equal(whoMapped(files[0]!.places[0]!, true), "walk 2250");
  assert.equal(whoMapped(files[0]!.places[0]!, false), "walk 0x8ca");
  assert.equal(whoMapped(files[2]!.places[0]!, true), "");
});

test("which file was at an address: of a thread its own process'", () => {
  assert.deepEqual(filesAt(files, "0x401010", "pt.0").map((f) => f.path), ["/bin/walk", "/bin/pair"]);
  assert.deepEqual(filesAt(files, "0x401010", "thread.2150.pair").map((f) => f.path), ["/bin/pair"]);
  assert.deepEqual(filesAt(files, "0xffffffff81000010", "pt.0").map((f) => f.path), ["[kernel]"]);
  assert.deepEqual(filesAt(files, "0x402000", "pt.0"), []);
});

test("what ran comes first; addresses of no file stand for themselves", () => {
  const hits = [hit("0x401010", "thread.2150.pair"), hit("0x900000", "pt.0"), hit("0x900010", "pt.0")];
  assert.equal(byUse(files, hits)[0]!.path, "/bin/pair");
  const unnamed = readMissing([{ file: "missing:0", path: "[vdso]", there: false, places: [place("0x866", "pair", "0x7000")], more: 0 }]);
  assert.deepEqual(byUse([...files, ...unnamed], hits), byUse(files, hits));
  assert.equal(byUse([...files, ...unnamed], [hit("0x7010", "pt.0")])[0]!.path, "[vdso]");
  assert.deepEqual(missingFrom(hits, files).map((m) => [m.from, m.to, m.times]), [[0x900000n, 0x900010n, 2]]);
});

test("processes by name", () => {
  const told = { runs: [{ from: 0, to: 9, context: "0x8ca", name: "walk" }, { from: 9, to: 12, vmid: "0x3", name: "guest" }, { from: 12, to: 13, context: "0x8ca" }] };
  const names = (decimal: boolean): string[] => readStates(told, 0n, decimal).runs.map(contextName);
  assert.deepEqual(names(true), ["walk 2250", "guest 0x3", "process 2250"]);
  assert.deepEqual(names(false), ["walk 0x8ca", "guest 0x3", "process 0x8ca"]);
});
