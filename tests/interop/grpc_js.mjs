// SPDX-License-Identifier: MIT
// gRPC's own library for JavaScript against the server: every method, errors, deadlines, cancelling, 100 MB each way,
// reflection, TLS. Started by interop.py, which passes the arguments.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [packages, protos, callsFile, address, tlsAddress, certificate] = process.argv.slice(2);
const require = createRequire(join(packages, "x.js"));
const grpc = require("@grpc/grpc-js");
const { loadSync } = require("@grpc/proto-loader");

const MB = 1 << 20;
const PIECES = 100;

const files = readdirSync(protos, { recursive: true }).filter((f) => f.endsWith(".proto") && !f.startsWith("pprof"));
const all = grpc.loadPackageDefinition(
  loadSync(files, { includeDirs: [protos], longs: String, enums: String, bytes: Buffer, defaults: true }),
);
const v1 = all.tracelake.v1;
const services = Object.entries(v1).filter(([, value]) => value.service);
const connect = (Service, to = address, credentials = grpc.credentials.createInsecure()) => new Service(to, credentials);
const clients = Object.fromEntries(services.map(([name, Service]) => [name, connect(Service)]));

const within = (seconds) => ({ deadline: Date.now() + seconds * 1000 });

/** The replies to a call of any type, or its error. `enough` ends an endless one. */
function call(client, method, requests, options = within(60), enough = Infinity) {
  return new Promise((resolve, reject) => {
    const replies = [];
    const one = (error, reply) => (error ? reject(error) : resolve([reply]));
    let stream;
    if (method.responseStream) {
      stream = method.requestStream ? client[method.originalName](options) : client[method.originalName](requests[0], options);
      stream.on("data", (reply) => {
        if (replies.push(reply) === enough) stream.cancel();
      });
      stream.on("error", (error) =>
        replies.length === enough && error.code === grpc.status.CANCELLED ? resolve(replies) : reject(error),
      );
      stream.on("end", () => resolve(replies));
    } else if (method.requestStream) {
      stream = client[method.originalName](options, one);
    } else {
      client[method.originalName](requests[0], options, one);
    }
    if (method.requestStream) {
      for (const r of requests) stream.write(r);
      stream.end();
    }
  });
}

const fails = (code, promise) =>
  promise.then(
    () => assert.fail(`expected ${grpc.status[code]}`),
    (error) => {
      assert.equal(grpc.status[error.code], grpc.status[code], error.message);
      return error;
    },
  );

const methodOf = (service, name) => Object.values(v1[service].service).find((m) => m.path.endsWith(`/${name}`));
const ask = (service, name, request, ...more) => call(clients[service], methodOf(service, name), [request], ...more);

async function everyMethod() {
  const calls = JSON.parse(readFileSync(callsFile, "utf8"));
  const known = services.flatMap(([, S]) => Object.values(S.service).map((m) => m.path.slice(1)));
  assert.deepEqual([...new Set(calls.map((c) => c.method))].sort(), known.sort());
  for (const { method, requests, endless } of calls) {
    const [service, name] = method.replace("tracelake.v1.", "").split("/");
    const messages = requests.map((r) => (r.chunk ? { chunk: { ...r.chunk, data: Buffer.from(r.chunk.data, "base64") } } : r));
    for (const m of messages) if (m.data) m.data = Buffer.from(m.data, "base64");
    const replies = await call(clients[service], methodOf(service, name), messages, within(60), endless ? 1 : Infinity);
    assert.ok(replies.length > 0, method);
  }
}

async function errors() {
  const error = await fails(grpc.status.NOT_FOUND, ask("Ranges", "Fetch", { trace: "none", stream: "cs.0" }));
  assert.match(error.details, /none/);
  await fails(grpc.status.INVALID_ARGUMENT, ask("Ranges", "Fetch", { trace: "sim", stream: "cs.10", begin: 9, to: 3 }));
  await fails(
    grpc.status.ALREADY_EXISTS,
    call(clients.Ingest, methodOf("Ingest", "Push"), [{ open: { rig: "other", trace: "sim", setup: "[trace]\nformat=itm,id=0\n" } }]),
  );
  const bad = { chunk: { offset: 0, data: Buffer.from("abc"), crc32c: 1 } };
  const open = { open: { rig: "r", trace: "bad", setup: "[trace]\nformat=itm,id=0\n" } };
  const damaged = await fails(grpc.status.INVALID_ARGUMENT, call(clients.Ingest, methodOf("Ingest", "Push"), [open, bad]));
  assert.match(damaged.details, /^offset 0:/);
  const large = { chunk: { offset: 0, data: Buffer.alloc(5 * MB), crc32c: 0 } };
  await fails(grpc.status.RESOURCE_EXHAUSTED, call(clients.Ingest, methodOf("Ingest", "Push"), [large]));
}

async function ends() {
  await fails(grpc.status.DEADLINE_EXCEEDED, ask("Catalog", "WatchTraces", {}, within(0.3)));
  const seen = await ask("Catalog", "WatchTraces", {}, within(60), 1);
  assert.equal(seen.length, 1);
}

/** Push 100 MB and fetch the same bytes, as fast as each side can. */
async function longStreams() {
  const piece = Buffer.alloc(MB);
  for (let i = 0, x = 1; i < MB; i++) piece[i] = x = (x * 48271) % 2147483647; // its low byte
  const crc = crc32c(piece);
  const push = clients.Ingest.push(within(120));
  let durable = "0";
  push.on("data", (reply) => (durable = reply.finished?.durable ?? durable));
  const pushed = new Promise((resolve, reject) => push.on("end", resolve).on("error", reject));
  push.write({ open: { rig: "r", trace: "long", setup: "[trace]\nformat=etm4,id=0x10\n" } });
  for (let i = 0; i < PIECES; i++)
    if (!push.write({ chunk: { offset: i * MB, data: piece, crc32c: crc } })) await new Promise((go) => push.once("drain", go));
  push.write({ finish: { length: PIECES * MB } });
  push.end();
  await pushed;
  assert.equal(Number(durable), PIECES * MB);
  let at = 0;
  const twice = Buffer.concat([piece, piece]);
  for await (const reply of clients.Raw.fetchRaw({ trace: "long" }, within(120))) {
    assert.equal(Number(reply.offset), at);
    assert.equal(reply.data.compare(twice, at % MB, (at % MB) + reply.data.length), 0);
    at += reply.data.length;
  }
  assert.equal(at, PIECES * MB);
}

function crc32c(bytes) {
  const table = Array.from({ length: 256 }, (_, i) => {
    for (let k = 0; k < 8; k++) i = i & 1 ? (i >>> 1) ^ 0x82f63b78 : i >>> 1;
    return i;
  });
  let crc = ~0;
  for (const b of bytes) crc = (crc >>> 8) ^ table[(crc ^ b) & 255];
  return ~crc >>> 0;
}

async function reflectionAndHealth() {
  for (const version of ["v1", "v1alpha"]) {
    const { ServerReflection } = all.grpc.reflection[version];
    const client = connect(ServerReflection);
    const method = Object.values(ServerReflection.service)[0];
    const [told] = await call(client, method, [{ listServices: "" }]);
    const names = told.listServicesResponse.service.map((s) => s.name);
    for (const [name] of services) assert.ok(names.includes(`tracelake.v1.${name}`), name);
    const [file] = await call(client, method, [{ fileContainingSymbol: "tracelake.v1.Ranges" }]);
    assert.ok(file.fileDescriptorResponse.fileDescriptorProto.length > 0);
    client.close();
  }
  const health = connect(all.grpc.health.v1.Health);
  const check = Object.values(all.grpc.health.v1.Health.service).find((m) => m.path.endsWith("/Check"));
  assert.equal((await call(health, check, [{ service: "tracelake.v1.Ranges" }]))[0].status, "SERVING");
  await fails(grpc.status.NOT_FOUND, call(health, check, [{ service: "nobody" }]));
  health.close();
}

async function overTls() {
  const client = connect(v1.Catalog, tlsAddress, grpc.credentials.createSsl(readFileSync(certificate)));
  const [reply] = await call(client, methodOf("Catalog", "GetTrace"), [{ trace: "sim" }]);
  assert.equal(reply.id, "sim");
  client.close();
}

for (const test of [everyMethod, errors, ends, longStreams, reflectionAndHealth, overTls]) {
  const begin = performance.now();
  await test();
  console.log(`${test.name.padEnd(30)} ${((performance.now() - begin) / 1000).toFixed(2)} s`);
}
for (const client of Object.values(clients)) client.close();
