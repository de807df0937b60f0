// SPDX-License-Identifier: MIT
// The page's cost in a browser for 1 G instructions in 16 streams, compared with its budgets. ./dev bench web
//
//   node tests/bench/web.mjs [--insns N] [--follow] [--json FILE]
//
// The trace is one of the simulated rig, with its sources written eight times under different trace IDs. Requests,
// bytes and memory are the same on every machine; times are printed as measured. --follow: only measure following a
// live trace.
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { launch, open, settle, traffic, wheel } from "../browser/harness.mjs";
import { Lab } from "../browser/lab.mjs";

const { values: args } = parseArgs({
  options: { insns: { type: "string", default: "1000000000" }, follow: { type: "boolean", default: false }, json: { type: "string" } },
});
const STREAMS = 16;
/** Approximate number of instructions per byte of the rig's trace. */
const INSNS_PER_BYTE = 10.8;
const FRAME = 16;
const DATA = 14; // bytes of one source in a frame without other sources

/** Bytes by trace ID. Source: Arm CoreSight Architecture Specification (IHI 0029), "Formatter". */
function sourcesOf(frames) {
  const out = new Map();
  let id = 0;
  const put = (byte) => {
    if (!out.has(id)) out.set(id, []);
    out.get(id).push(byte);
  };
  for (let at = 0; at + FRAME <= frames.length;) {
    if (frames.readUInt32LE(at) === 0x7fffffff) {
      at += 4;
      continue;
    }
    const aux = frames[at + 15];
    for (let i = 0; i < 15; i += 2) {
      const [first, flag] = [frames[at + i], (aux >> (i / 2)) & 1];
      if (first & 1) {
        // The new ID applies at once, or after the following byte.
        if (flag && i < 14) put(frames[at + i + 1]);
        id = first >> 1;
        if (!flag && i < 14) put(frames[at + i + 1]);
      } else {
        put(first | flag);
        if (i < 14) put(frames[at + i + 1]);
      }
    }
    at += FRAME;
  }
  out.delete(0);
  return [...out.values()].map((bytes) => Buffer.from(bytes));
}

/** Frames that each contain bytes of one source, in turns. */
function* framesOf(sources) {
  const longest = Math.max(...sources.map((s) => s.length));
  const piece = 1024 * DATA;
  for (let from = 0; from < longest; from += piece) {
    for (let k = 0; k < sources.length; k++) {
      const bytes = sources[k].subarray(from, from + piece);
      const frames = Buffer.alloc(Math.ceil(bytes.length / DATA) * FRAME);
      for (let i = 0, at = 0; i < bytes.length; at += FRAME) {
        frames[at] = ((0x10 + k) << 1) | 1;
        let aux = 0;
        for (let p = 1; p < 15; p++, i++) {
          if (i === bytes.length && p % 2 === 1) {
            // The rest has no source.
            frames[at + p] = 0;
            if (p + 1 < 15) frames[at + p + 1] = 1;
            break;
          }
          const byte = i < bytes.length ? bytes[i] : 0;
          if (p % 2 === 0) aux |= (byte & 1) << (p / 2);
          frames[at + p] = p % 2 === 0 ? byte & 0xfe : byte;
        }
        frames[at + 15] = aux;
      }
      yield frames;
    }
  }
}

async function capture(lab) {
  const file = (name) => path.join(lab.dir, name);
  const bytes = Math.ceil((Number(args.insns) * 2) / STREAMS / INSNS_PER_BYTE);
  await lab.run("tracelake-rig", ["--kind", "etm", "--server", lab.url, "--trace", "rig", "--quiet", "--seed", "7",
    "--rate", "2000000000", "--bytes", String(bytes), "--save", file("rig.tpiu"), "--config", file("rig.ini"), "--image", file("rig.elf")]);
  const two = sourcesOf(fs.readFileSync(file("rig.tpiu")));
  const sources = Array.from({ length: STREAMS }, (_, k) => two[k % two.length]);
  const out = fs.openSync(file("big.tpiu"), "w");
  for (const frames of framesOf(sources)) fs.writeSync(out, frames);
  fs.closeSync(out);
  const [, section] = fs.readFileSync(file("rig.ini"), "utf8").split(/\n\[source [^\]]*\]\n/);
  const registers = section.replace(/^(id|TRCTRACEIDR)=.*\n/gm, "");
  fs.writeFileSync(file("big.ini"), `[trace]\nformat=tpiu\nclock=100000000\n${sources.map((_, k) => {
    const id = `0x${(0x10 + k).toString(16)}`;
    return `\n[source cs.${id.slice(2)}]\n${registers}id=${id}\nTRCTRACEIDR=${id}\n`;
  }).join("")}`);
  await lab.run("tracelake", ["push", "--server", lab.url, "--trace", "big", "--format", "tpiu", "--config", file("big.ini"),
    "--image", file("rig.elf"), "--quiet", file("big.tpiu")]);
  fs.rmSync(file("big.tpiu"));
  return lab.until("big", (t) => t.state === "sealed", 1800);
}

const rows = [];

function tell(what, value, unit, budget) {
  const within = budget === undefined ? "" : value <= budget ? "yes" : "NO";
  rows.push({ what, value, unit, budget, within: within === "yes" });
  console.log(`${what.padEnd(66)} ${String(Math.round(value * 10) / 10).padStart(9)} ${unit.padEnd(9)} ${budget === undefined ? "" : `≤ ${budget}`.padEnd(8)} ${within}`);
}

const KB = 1000;
const FOLLOW_MS = 15000;
/** Everything below each lane of the rig's live trace. */
const ALL_SHOWN = "?show=states,counters&open=cs.10,cs.12";

/**
 * Processor time of the page's script in each frame; frames of the measurement itself draw nothing.
 */
async function draws(page, what, act) {
  await browser.startTracing(page, { categories: ["devtools.timeline"] });
  await act();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const all = traceEvents.filter((e) => e.name === "FireAnimationFrame").map((e) => e.tdur / 1000).filter((ms) => ms > 0.2).sort((a, b) => a - b);
  tell(`script of a frame, 95 %: ${what}`, all[Math.floor(all.length * 0.95)] ?? 0, "ms", 4);
}

/** Heap and buffers used by the page. */
async function memory(page, session) {
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
  return (usedSize + backingStorageSize) / (1 << 20);
}

/** The network traffic of a page that follows a growing trace, including the event stream. */
async function follow() {
  for (const [what, newest, more] of [["the newest 10 k instructions", "10000", ""], ["the newest 1 M instructions", "1000000", ""],
    ["the newest 10 k instructions", "10000", ALL_SHOWN], ["the newest 1 M instructions", "1000000", ALL_SHOWN],
    ["the whole trace", "0", ALL_SHOWN], ["the whole trace by time", "0", `${ALL_SHOWN}&axis=time`]]) {
    const live = await fresh();
    const session = await live.context().newCDPSession(live);
    let bytes = 0;
    session.on("Network.dataReceived", (e) => { bytes += e.encodedDataLength; });
    await session.send("Network.enable");
    await open(live, lab.tls, `#/trace/live${more}`);
    await live.selectOption(".followbox select", newest);
    await live.waitForSelector(".follow.on");
    await settle(live).catch(() => {});
    bytes = 0;
    const began = performance.now();
    await live.waitForTimeout(FOLLOW_MS); // long enough to measure a rate
    tell(`following ${what}${more === "" ? "" : ", stacks, states, counters"}`,
      bytes / KB / ((performance.now() - began) / 1000), "KB/s", 100);
    await live.context().close();
  }
}

const browser = await launch();
const lab = new Lab();
const fresh = async () => {
  const context = await browser.newContext({ viewport: { width: 1920, height: 1000 }, ignoreHTTPSErrors: true });
  return context.newPage();
};

/** The cost of a finished trace with many instructions. */
async function look() {
  const trace = await capture(lab);
  const insns = trace.streams.map((s) => Number(s.insns));
  const total = insns.reduce((a, b) => a + b, 0);
  const last = Math.max(...insns);
  console.log(`${trace.streams.length} streams, ${(total / 1e9).toFixed(2)} G instructions`);
  const names = trace.streams.map((s) => s.name);
  const stacks = `open=${names.join(",")}`;
  const middle = [390, 200];
  let most = 0;

  const page = await fresh();
  const session = await page.context().newCDPSession(page);
  const net = traffic(page);
  await open(page, lab.tls, "#/trace/big");
  tell("opening: requests", net.seen.length + 1, "", 10);
  tell("opening: bytes, the page included", (await net.bytes()) / KB, "KB", 250);
  const memoryAt = async () => { most = Math.max(most, await memory(page, session)); };
  await memoryAt();

  for (const [what, from, to] of [["whole", 0, last], ["1 M instructions", 0.4 * last, 0.4 * last + 1e6], ["20 k instructions", 0.6 * last, 0.6 * last + 20000]]) {
    for (const [how, opened] of [["stacks closed", "open="], ["16 stacks open", stacks]]) {
      await page.goto("about:blank");
      await open(page, lab.tls, `#/trace/big?panel=none&open=`);
      net.reset();
      await page.evaluate((hash) => { location.hash = hash; }, `#/trace/big?panel=none&from=${Math.floor(from)}&to=${Math.floor(to)}&${opened}`);
      await settle(page);
      tell(`a view: ${what}, ${how}`, (await net.bytes()) / KB, "KB", 250);
      await memoryAt();
      await draws(page, `hovering, ${what}, ${how}`, () => page.evaluate(async ([x, y]) => {
        const canvas = document.querySelector("#timeline");
        for (let i = 0; i < 90; i++) {
          canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: x + 4 * i, clientY: y + 3 * i }));
          await new Promise(requestAnimationFrame);
        }
      }, middle));
      await draws(page, `going along, ${what}, ${how}`, () => wheel(page, middle, 60, { deltaX: 12 }));
      await settle(page);
    }
  }

  await page.goto("about:blank");
  await open(page, lab.tls, "#/trace/big?panel=none&open=");
  net.reset();
  await draws(page, "held zoom", () => wheel(page, middle, 110, { deltaY: -50, ctrlKey: true }));
  await settle(page);
  const reached = await page.evaluate(() => document.querySelector("footer").textContent.trim());
  tell(`held zoom from the whole to ${/[\d.]+ ?k? insns? in view/.exec(reached)?.[0] ?? reached}: tiles`, net.tiles().length, "", 12);
  await memoryAt();

  await page.evaluate((hash) => { location.hash = hash; }, `#/trace/big?panel=none&open=&from=${Math.floor(last / 3)}&to=${Math.floor(last / 3) + 1000000}`);
  await settle(page);
  for (let i = 0; i < 10; i++) { await wheel(page, middle, 4, { deltaX: 100 }); await settle(page); }
  net.reset();
  await wheel(page, middle, 40, { deltaX: -100 });
  await settle(page);
  tell("going back over 4000 pixels: tiles", net.tiles().length, "", 0);

  // Wherever the user has looked.
  await page.evaluate((hash) => { location.hash = hash; }, `#/trace/big?panel=none&${stacks}`);
  await settle(page);
  for (let k = 0; k < 40; k++) {
    const wide = last / 4 ** (1 + (k % 9));
    const from = Math.floor(((k * 37) % 100) / 100 * (last - wide));
    await page.evaluate((hash) => { location.hash = hash; }, `#/trace/big?panel=none&${stacks}&show=states,counters&from=${from}&to=${Math.ceil(from + wide)}`);
    await settle(page);
    if (k % 10 === 9) await memoryAt();
  }
  tell("memory: heap and buffers, the most", most, "MiB", 64);
  await page.context().close();
}

try {
  await lab.start();
  if (!args.follow) await look();
  await lab.whileLive(follow);
} finally {
  await lab.close();
  await browser.close();
}
if (args.json) fs.writeFileSync(args.json, JSON.stringify(rows, null, 1));
process.exit(rows.every((r) => r.budget === undefined || r.within || r.unit === "ms") ? 0 : 1);
