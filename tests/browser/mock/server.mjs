// SPDX-License-Identifier: MIT
// A server of the same HTTP interface with synthetic traces, for tests of the page alone and for working on it.
// Standalone: node tests/browser/mock/server.mjs [--port N]
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import zlib from "node:zlib";
import * as synth from "./trace.mjs";
import { encodeTile } from "./wire.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../../..");
const build = process.env.TL_BUILD_DIR ?? path.join(root, "build");
const BUCKETS = 512;
const TILES_KEPT = 500; // of a lane each, some 80 KB
const TILE_BASE = { insn: 0, time: 10 };
const DAY = 86400e9;
const CREATED = 1767225600e9; // 2026-01-01

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};
const CSP = (fs.readFileSync(path.join(root, "server/net/http.c"), "utf8")
  .match(/content_policy\[\] =([\s\S]*?);\n\n/)[1].match(/"[^"]*"/g) ?? []).map((s) => s.slice(1, -1)).join("");

function stream(lane, insns, name, protocol = "etm4") {
  return {
    name, protocol, core: lane < 8 ? "Cortex-A72" : "Cortex-A53", device: `ETM_${lane}`, insns, sealed_insns: insns, shards: Math.ceil(insns / 1e6), time_first: synth.timeOf(lane, 0),
    time_last: synth.timeOf(lane, Math.max(0, insns - 1)), has_time: true, time_unit_ns: true,
    events: Math.floor(insns / 196608), gaps: Math.floor(insns / 2 ** 22 / 9), lost_bytes: Math.floor(insns / 2e5),
    stored_bytes: Math.floor(insns * 0.11),
  };
}

function trace(id, rig, state, streams, more = {}) {
  const insns = streams.reduce((n, s) => n + s.insns, 0);
  return {
    id, rig, state, format: "tpiu", created_ns: String(CREATED), updated_ns: String(CREATED + DAY),
    raw_bytes: Math.floor(insns / 9), decoded_bytes: Math.floor(insns / 9), generation: 1,
    revision: 7, message: "", labels: {}, tile_base: TILE_BASE, streams, ...more,
  };
}

/** The live trace grows by itself from when the server starts. */
export function createServer({ rate = 3e6 } = {}) {
  const began = Date.now();
  let offset = 0;
  const liveInsns = () => Math.floor(40e6 + offset + ((Date.now() - began) / 1000) * rate);
  const fixed = [
    trace("soak-2026-01-02", "bench-7", "sealed",
      [[0, 1e9, "cs.10"], [1, 812345678, "cs.12"], [2, 640e6, "cs.14"], [3, 204800000, "cs.16"]]
        .map(([lane, n, name]) => stream(lane, n, name)), { labels: { board: "juno-r1", build: "4711" } }),
    trace("farm-42", "farm", "sealed",
      Array.from({ length: 42 }, (_, lane) => stream(lane, 30e6 + lane * 1e6, `cs.${(16 + lane).toString(16)}`)),
      { format: "tpiu,sync=fsync" }),
    trace("broken-upload", "bench-3", "failed", [stream(0, 12000, "cs.10")],
      { message: "offset 0x1a2b: no synchronisation packet in 64 KiB" }),
  ];
  // Not in the list: lanes of which nothing is a pixel wide.
  const few = trace("few", "bench-7", "sealed", [stream(0, 400e6, "cs.10"), stream(1, 6, "cs.12"), stream(2, 6, "itm", "itm")]);
  // The same with its index behind: 100 M instructions, and more as the live trace grows.
  const behind = () => {
    const lanes = [[0, 400e6, "cs.10"], [1, 300e6, "cs.12"]].map(([lane, n, name]) => {
      const insns = Math.min(n, 100e6 + offset);
      return insns === n ? stream(lane, n, name)
        : { ...stream(lane, insns, name), outlined_insns: n, outlined_time: synth.timeOf(lane, n - 1) };
    });
    return trace("behind", "bench-7", "decoding", lanes, { revision: 7 + offset });
  };
  const all = () => {
    const n = liveInsns();
    const live = trace("rig-a-live", "rig-a", "live",
      [stream(0, n, "cs.10"), stream(1, Math.floor(n * 0.8), "cs.12")],
      { revision: Math.floor((Date.now() - began) / 100) + offset, updated_ns: String(Date.now() * 1e6) });
    return { revision: live.revision, traces: [live, ...fixed] };
  };

  // Checks look at the same tiles again and again; to make one takes longer than all else here.
  const made = new Map();
  function columnsOf(lane, axis, first, width, insns) {
    const name = [lane, axis, first, width, insns].join();
    if (!made.has(name)) {
      const rows = Array.from({ length: BUCKETS }, (_, b) => synth.bucket(lane, axis, first + b * width, width, insns));
      const column = (key) => rows.map((r) => r[key]);
      if (made.size === TILES_KEPT) made.clear();
      made.set(name, {
        lane, insns: column("insns"), coverage: column("coverage"), fn: column("fn"), share: column("share"),
        fn2: column("fn2"), share2: column("share2"), distinct: column("distinct"), page: column("page"),
        privilege: rows.flatMap((r) => r.privilege), branches: column("branches"), events: column("events"),
        eventCount: column("eventCount"), flags: column("flags"), depthMin: column("least"), depthMax: column("most"),
      });
    }
    return made.get(name);
  }

  function tile(t, [axis, level, index], query) {
    const width = 2 ** (TILE_BASE[axis] + 2 * level);
    const first = index * BUCKETS * width;
    const [lo, hi] = (query.get("lanes") ?? "0-15").split("-").map(Number);
    const lanes = [];
    let sealed = !["live", "decoding"].includes(t.state);
    for (let lane = lo; lane <= hi && lane < t.streams.length; lane++) {
      const { insns, time_last: last } = t.streams[lane];
      const edge = axis === "time" ? last : insns;
      sealed ||= edge >= first + BUCKETS * width;
      if (edge < first + BUCKETS * width && !["sealed", "failed"].includes(t.state)) sealed = false;
      const more = axis === "time" ? t.streams[lane].outlined_time : t.streams[lane].outlined_insns;
      lanes.push({
        ...columnsOf(lane, axis, first, width, insns),
        behindFrom: more > edge && first + BUCKETS * width > edge ? edge : undefined,
      });
    }
    return { body: encodeTile({ axis, level, index, bucket: width, first, sealed, generation: t.generation, lanes }), sealed };
  }

  // As the server does: files of the page are packed well, once; answers quickly.
  const packed = new Map();
  const pack = (type, body) => {
    if (!/javascript|html|css/.test(type)) return zlib.gzipSync(body, { level: 1 });
    const key = body.toString("latin1");
    if (!packed.has(key)) packed.set(key, zlib.gzipSync(body, { level: 9 }));
    return packed.get(key);
  };

  const server = http.createServer((req, res) => {
    const url = new URL(req.url, "http://mock");
    const send = (status, type, body, headers = {}) => {
      const zip = body.length > 400 && type !== "font/woff2" && (req.headers["accept-encoding"] ?? "").includes("gzip");
      const bytes = zip ? pack(type, body) : body;
      res.writeHead(status, {
        "content-type": type, "content-length": bytes.length, "x-content-type-options": "nosniff",
        ...(zip ? { "content-encoding": "gzip" } : {}), ...headers,
      });
      res.end(bytes);
    };
    const json = (value, status = 200) => send(status, "application/json", Buffer.from(JSON.stringify(value)), { "cache-control": "no-store" });
    const missing = () => json({ error: "not found" }, 404);
    const parts = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);

    if (parts[0] !== "api") {
      const name = url.pathname === "/" ? "index.html" : path.basename(url.pathname);
      const file = path.join(build, "web/dist", name);
      if (!fs.existsSync(file)) return missing();
      return send(200, TYPES[path.extname(name)], fs.readFileSync(file),
        { "content-security-policy": CSP, "cache-control": "no-cache" });
    }
    if (url.pathname === "/api/v1/traces") return json(all());
    if (url.pathname === "/api/v1/events") {
      res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      // Later on only changes, if they are requested.
      const told = new Map();
      const tell = () => {
        const { traces } = all();
        const news = traces.filter((t) => told.get(t.id) !== t.revision);
        const changes = told.size > 0 && url.searchParams.has("changes");
        const gone = [...told.keys()].filter((id) => !traces.some((t) => t.id === id));
        for (const id of gone) told.delete(id);
        for (const t of traces) told.set(t.id, t.revision);
        res.write(`event: ${changes ? "changes" : "traces"}\ndata: ${JSON.stringify(changes ? { traces: news, gone } : { traces })}\n\n`);
      };
      tell();
      const timer = setInterval(tell, Number(url.searchParams.get("every") ?? 200));
      req.on("close", () => clearInterval(timer));
      return undefined;
    }
    const t = [...all().traces, few, behind()].find((x) => x.id === parts[3]);
    if (!t) return missing();
    if (parts.length === 4) return json(t);
    if (parts[4] === "functions") {
      return json(synth.NAMES.map((name, id) => ({ id, name, pc: synth.hex(synth.addressOf(id)) })));
    }
    if (parts[4] === "tiles") {
      const { body, sealed } = tile(t, [parts[5], Number(parts[6]), Number(parts[7])], url.searchParams);
      const etag = `"${synth.hash(...body.subarray(0, 4096))}-${body.length}-${sealed ? 0 : t.revision}"`;
      if (req.headers["if-none-match"] === etag) {
        res.writeHead(304, { etag });
        return res.end();
      }
      return send(200, "application/x-protobuf", body,
        { etag, "cache-control": sealed ? "public, max-age=31536000, immutable" : "no-cache" });
    }
    const number = (key, otherwise) => (url.searchParams.has(key) ? Number(url.searchParams.get(key)) : otherwise);
    if (parts[4] === "find") return json(synth.find(t.streams, Object.fromEntries(url.searchParams)));
    if (parts[4] === "hits") {
      const [axis, from, to] = [url.searchParams.get("axis") ?? "insn", number("from", 0), number("to", Infinity)];
      return json({ streams: Object.fromEntries(url.searchParams.get("streams").split(",").map((name) =>
        [name, synth.hits(t.streams, name, url.searchParams.get("q"), axis, from, to, number("columns", 512))])) });
    }
    if (parts[4] === "extremes") return json(synth.extremes(t.streams));
    if (parts[4] === "log") return json({ streams: {} });
    if (parts[4] === "stats") return json(synth.stats(0, 0, t.streams[0].insns));
    if (parts[4] === "profile") return json(synth.profile(0, t.streams[0].insns));
    if (parts[4] === "slices") {
      return json({ streams: Object.fromEntries(url.searchParams.get("streams").split(",").map((name) => {
        const of = t.streams.findIndex((s) => s.name === name);
        return [name, synth.slices(of, url.searchParams.get("axis") ?? "insn", number("from", 0),
          number("to", Infinity), t.streams[of].insns)];
      })) });
    }
    const lane = t.streams.findIndex((s) => s.name === parts[5]);
    if (parts[4] !== "streams" || lane < 0) return missing();
    const { insns } = t.streams[lane];
    switch (parts[6]) {
      case "locate": {
        const at = number("at", 0);
        const i = Math.min(insns - 1, url.searchParams.get("unit") === "time" ? synth.insnAt(lane, at) : at);
        return json({ insn: i, time: synth.timeOf(lane, i), byte: Math.floor(i / 9), has_time: true });
      }
      case "insns": {
        const from = number("from", 0);
        const n = Math.max(0, Math.min(number("count", 100), 4096, insns - from));
        return json(Array.from({ length: n }, (_, k) => synth.insnRow(lane, from + k)));
      }
      case "find": {
        const got = synth.find(t.streams, Object.fromEntries(url.searchParams));
        return json({ ...got, hits: got.hits.filter((h) => h.stream === parts[5] && h.insn >= number("from", 0) && h.insn < number("to", insns)) });
      }
      case "functions":
        return json(synth.ownTimes(lane, number("from", 0), number("to", 0)));
      case "stats":
        return json(synth.stats(lane, number("from", 0), Math.min(insns, number("to", insns))));
      case "range":
        return send(200, "text/plain", Buffer.from(Array.from({ length: Math.min(1000, number("to", 0) - number("from", 0)) },
          (_, k) => synth.insnRow(lane, number("from", 0) + k)).map((r) => `I ${r.pc.slice(2)} ${r.encoding}\n`).join("")));
      default:
        return missing();
    }
  });
  const remove = (id) => { fixed.splice(fixed.findIndex((t) => t.id === id), 1); };
  return { server, grow: (n) => { offset += n; }, remove };
}

export function listen(options = {}, port = 0) {
  const { server, grow, remove } = createServer(options);
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => resolve({
      url: `http://127.0.0.1:${server.address().port}`, grow, remove,
      close: () => new Promise((done) => { server.closeAllConnections(); server.close(done); }),
    }));
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const at = process.argv.indexOf("--port");
  const { url } = await listen({}, at > 0 ? Number(process.argv[at + 1]) : 8099);
  console.log(url);
}
