// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { readTrace } from "../src/data/model.ts";
import { Overview } from "../src/data/overview.ts";

test("files that are missing are named, and what grew is counted after a while", async (t) => {
  let now = 1e6;
  t.mock.method(performance, "now", () => now);
  t.mock.method(globalThis, "fetch", (url: string) => Promise.resolve(Response.json(
    url.endsWith("/images") ? [{ file: "build-id:11", path: "/bin/walk", there: false, places: [{ address: "0x401000", length: "0x1000" }] }]
      : url.includes("/find?") ? { hits: [{ pc: "0x401010", stream: "pt.0" }] }
        : { insns: 5, gaps: { "no-image": 1 } })));
  const trace = readTrace({ id: "t", format: "perf", revision: 1 });
  let counted = 0;
  let second = (): void => {};
  const come = new Promise<void>((done) => { second = done; });
  const overview = new Overview(trace, () => { if (++counted === 2) second(); });
  assert.equal(overview.want(trace), 0);
  await come;
  assert.deepEqual(overview.files.map((f) => f.path), ["/bin/walk"]);
  assert.equal(overview.want(trace), 0);
  now += 2000;
  assert.equal(overview.want({ ...trace, revision: 2 }), 3000);
  now += 3000;
  assert.equal(overview.want({ ...trace, revision: 2 }), 0);
  overview.stop();
});
