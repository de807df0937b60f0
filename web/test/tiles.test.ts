// SPDX-License-Identifier: MIT
import { create, toBinary } from "@bufbuild/protobuf";
import assert from "node:assert/strict";
import test from "node:test";
import { TileSchema } from "../gen/tracelake/v1/ranges_pb";
import { TileClient, CAPACITY, IN_FLIGHT } from "../src/data/tiles.ts";
import type { TileId } from "../src/data/tile.ts";

function id(index: number, level = 0): TileId {
  return { axis: "insn", level, index, stripe: 0 };
}

interface Request {
  url: string;
  headers: Record<string, string>;
  signal: AbortSignal;
  answer(status?: number, more?: { sealed?: boolean; etag?: string }): Promise<void>;
  fail(): Promise<void>;
}

/** A client over requests that are answered by hand. */
function setUp(): { client: TileClient; open: Request[]; time: { now: number }; pause: { ms: number } } {
  const open: Request[] = [];
  const time = { now: 0 };
  const pause = { ms: 0 };
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await Promise.resolve();
  };
  const client = new TileClient({ id: "t", epoch: 0n }, () => {}, (url, init) => new Promise((resolve, reject) => {
    const request: Request = {
      url, headers: init.headers as Record<string, string>, signal: init.signal!,
      answer: (status = 200, { sealed = true, etag = "" } = {}) => {
        open.splice(open.indexOf(request), 1);
        const body = status === 304 ? null : toBinary(TileSchema, create(TileSchema, { bucket: 1n, sealed }));
        resolve(new Response(body as BodyInit | null, { status, headers: etag ? { etag } : {} }));
        return new Promise((done) => { setTimeout(done, 0); });
      },
      fail: () => {
        open.splice(open.indexOf(request), 1);
        reject(new TypeError("Failed to fetch"));
        return settle();
      },
    };
    init.signal!.addEventListener("abort", () => {
      open.splice(open.indexOf(request), 1);
      reject(new DOMException("aborted", "AbortError"));
    });
    open.push(request);
  }), () => time.now, () => pause.ms);
  client.update(1, 1);
  return { client, open, time, pause };
}

test("a tile that may have grown is not asked for while the page rests; one that is not here is", async () => {
  const { client, open, time, pause } = setUp();
  client.want([id(0)]);
  await open[0]!.answer(200, { sealed: false });
  client.update(1, 2);
  pause.ms = 500;
  time.now = 1000;
  client.want([id(0), id(1)]);
  assert.deepEqual(open.map((r) => r.url.match(/insn\/0\/(\d+)\?/)![1]), ["1"]);
  assert.equal(client.busy, true);
  await open[0]!.answer();
  pause.ms = 0;
  client.want([id(0), id(1)]);
  assert.equal(open.length, 1);
  assert.equal(client.busy, false, "what only grew does not keep the page busy");
});

test("no more than six at once, in the order of need", async () => {
  const { client, open } = setUp();
  client.want(Array.from({ length: 20 }, (_, i) => id(i)));
  assert.equal(open.length, IN_FLIGHT);
  assert.deepEqual(open.map((r) => r.url.match(/insn\/0\/(\d+)\?/)![1]), ["0", "1", "2", "3", "4", "5"]);
  assert.match(open[0]!.url, /^api\/v1\/traces\/t\/tiles\/insn\/0\/0\?lanes=0-15&gen=1$/);
  await open[0]!.answer();
  assert.equal(open.length, IN_FLIGHT);
  assert.match(open[5]!.url, /insn\/0\/6\?/);
});

test("what is no longer wanted is aborted, and what is new goes at once", () => {
  const { client, open } = setUp();
  client.want(Array.from({ length: 6 }, (_, i) => id(i)));
  client.want([id(100), id(2)]);
  assert.deepEqual(open.map((r) => r.url.match(/insn\/0\/(\d+)\?/)![1]), ["2", "100"]);
});

test("a sealed tile is asked for once", async () => {
  const { client, open } = setUp();
  client.want([id(1)]);
  await open[0]!.answer(200, { sealed: true });
  assert.ok(client.peek(id(1)));
  client.update(1, 2);
  client.want([id(1)]);
  assert.equal(open.length, 0);
});

test("an open tile is asked for again when the trace has grown, with its ETag", async () => {
  const { client, open, time } = setUp();
  client.want([id(1)]);
  await open[0]!.answer(200, { sealed: false, etag: '"a"' });
  client.want([id(1)]);
  assert.equal(open.length, 0, "the trace has not grown");
  client.update(1, 2);
  client.want([id(1)]);
  assert.equal(open.length, 0, "not so soon");
  time.now = 1000;
  client.want([id(1)]);
  assert.equal(open[0]!.headers["if-none-match"], '"a"');
  const before = client.peek(id(1));
  await open[0]!.answer(304);
  assert.equal(client.peek(id(1)), before);
  client.want([id(1)]);
  assert.equal(open.length, 0, "304 counts as an answer of this revision");
});

test("a failure is not repeated at once, and what was here before stays", async () => {
  const { client, open, time } = setUp();
  client.want([id(1), id(2)]);
  await open[0]!.answer(404);
  await open[0]!.fail();
  assert.equal(client.peek(id(1)), undefined);
  client.want([id(1), id(2)]);
  assert.equal(open.length, 0);
  time.now = 10000;
  client.want([id(1), id(2)]);
  assert.equal(open.length, 2);
});

test("another generation voids everything", async () => {
  const { client, open } = setUp();
  client.want([id(1), id(2)]);
  await open[0]!.answer();
  client.update(2, 5);
  assert.equal(open.length, 0);
  assert.equal(client.peek(id(1)), undefined);
  client.want([id(1)]);
  assert.match(open[0]!.url, /gen=2$/);
});

test("memory is bounded", async () => {
  const { client, open } = setUp();
  for (let i = 0; i < CAPACITY + 50; i++) {
    client.want([id(i)]);
    await open[0]!.answer();
  }
  assert.equal(client.peek(id(0)), undefined);
  assert.ok(client.peek(id(CAPACITY + 49)));
});
