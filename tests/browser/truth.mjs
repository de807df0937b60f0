// SPDX-License-Identifier: MIT
// What the page tells at a spot, against what a simulated rig executed there: which function, with which share of the
// bucket, in which colour, and which instruction a click finds. On both axes, at eight zooms, at random places.
import assert from "node:assert/strict";
import fs from "node:fs";
import { frame, open, settle } from "./harness.mjs";

const ZOOMS = 8;
/** Units in view at the last zoom. */
const NARROWEST = 48;
const SNAP = 8; // pixels within which a click finds an edge
const BAND = 30; // pixels of the band
const MARKS = 8; // pixels above the band of functions
/** A share is told in whole percent, of a number that was stored in a byte. */
const SHARE = 0.011;
/** Where the page says that there are many functions, the leading ones are estimates by twelve counters. */
const ESTIMATE = 1 / 12;
/** Pages are not counted, only some of them told. */
const AMONG = "among others";
const exactness = ({ share }) => SHARE + (share.includes("functions") ? ESTIMATE : 0);

/** Numbers in [0, 1) from a seed. */
function randomOf(seed) {
  let state = BigInt(seed) * 2n + 1n;
  return () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number(state >> 33n) / 2 ** 31;
  };
}

/** Functions of an ELF file by address: [first, behind the last, name]. */
function functionsOf(file) {
  const b = fs.readFileSync(file);
  if (b.length === 0) return []; // the rig has no program
  const wide = b[4] === 2;
  const word = (at) => (wide ? b.readBigUInt64LE(at) : BigInt(b.readUInt32LE(at)));
  const arm = b.readUInt16LE(18) === 40;
  const table = Number(word(wide ? 40 : 32));
  const [size, count] = [b.readUInt16LE(wide ? 58 : 46), b.readUInt16LE(wide ? 60 : 48)];
  const section = (i) => {
    const at = table + i * size;
    return { type: b.readUInt32LE(at + 4), from: Number(word(at + (wide ? 24 : 16))), n: Number(word(at + (wide ? 32 : 20))), link: b.readUInt32LE(at + (wide ? 40 : 24)) };
  };
  const found = [];
  for (let i = 0; i < count; i++) {
    const symbols = section(i);
    if (symbols.type !== 2) continue;
    const names = section(symbols.link).from;
    const each = wide ? 24 : 16;
    for (let at = symbols.from; at < symbols.from + symbols.n; at += each) {
      if ((b[at + (wide ? 4 : 12)] & 15) !== 2) continue; // functions
      const name = names + b.readUInt32LE(at);
      const first = word(at + (wide ? 8 : 4)) & (arm ? ~1n : ~0n);
      found.push([first, first + word(at + (wide ? 16 : 8)), b.toString("latin1", name, b.indexOf(0, name))]);
    }
  }
  return found.sort((x, y) => (x[0] < y[0] ? -1 : 1));
}

/** What was executed, by stream: flow text, as a rig writes it. */
export function readTruth(text, functions) {
  const streams = new Map();
  const known = new Map(); // function by address
  const nameOf = (pc) => {
    const at = BigInt(`0x${pc}`);
    const [first, , name] = functions.findLast(([from, to]) => from <= at && at < to) ?? [at, at, ""];
    return { name, offset: Number(at - first) };
  };
  let stream;
  const ran = (pc, make) => {
    let fn = known.get(pc);
    if (!fn) known.set(pc, fn = make(pc));
    stream.pcs.push(pc);
    stream.fns.push(fn);
  };
  for (const line of text.split("\n")) {
    const [kind, a, b] = line.split(" ");
    if (kind === "#") streams.set(b, stream = { pcs: [], fns: [], knots: [], holes: new Set() });
    else if (kind === "T") stream.knots.push([stream.pcs.length, Number(a)]);
    else if (line.startsWith("A time ")) stream.knots.push([stream.pcs.length, Number(b)]);
    else if (kind === "G" || kind === "O") stream.holes.add(stream.pcs.length);
    else if (kind === "I") ran(a, nameOf);
    else if (kind === "B") { // without a program code is told apart by its pages, and runs until the next branch
      stream.pages = true;
      ran(b, (pc) => ({ name: `page 0x${(BigInt(`0x${pc}`) & ~4095n).toString(16)}`, offset: 0 }));
    } else if (kind === "S" || kind === "H") stream.pcs.push(""); // a record, which is executed nowhere
  }
  return streams;
}

/** Counts of functions in a range of instructions. */
function counted(truth, from, to) {
  const counts = new Map();
  for (let i = Math.max(0, from); i < Math.min(truth.fns.length, to); i++) counts.set(truth.fns[i].name, (counts.get(truth.fns[i].name) ?? 0) + 1);
  return counts;
}

/**
 * Stretches of time: in each either one function ran, which is sure, or one of several. `unit`: of the page's axis in a
 * tick; `slack`: as exact as the trace tells it.
 */
function stretches(truth, unit, slack) {
  const all = [];
  for (let k = 0; k + 1 < truth.knots.length; k++) {
    const [[at, t], [next, then]] = [truth.knots[k], truth.knots[k + 1]];
    // Time that passes without an instruction is that of the one before.
    const names = new Set(truth.fns.slice(at, next).map((f) => f.name));
    if (names.size === 0 && at > 0) names.add(truth.fns[at - 1].name);
    const hole = [...truth.holes].some((h) => h >= at && h <= next);
    const last = all.at(-1);
    const sure = names.size === 1 && !hole;
    if (sure && last?.sure && last.names.has([...names][0])) last.to = then * unit;
    else if (then > t) all.push({ from: t * unit, to: then * unit, names, sure, hole });
  }
  return all.map((s) => ({ ...s, least: [s.from + slack, s.to - slack], most: [s.from - slack, s.to + slack] }));
}

/** Least and most time of each function in a range. */
function bounds(all, from, to) {
  const overlap = ([a, b]) => Math.max(0, Math.min(b, to) - Math.max(a, from));
  const by = new Map();
  for (const s of all) {
    const most = overlap(s.most);
    if (most === 0) continue;
    for (const name of s.names) {
      const one = by.get(name) ?? { least: 0, most: 0 };
      one.most += most;
      if (s.sure) one.least += overlap(s.least);
      by.set(name, one);
    }
  }
  return by;
}

/** A written time in ns, or ticks: "9.334 847 ms". */
function readTime(text) {
  const [, number, unit] = /^([\d,. ]+?) (ns|µs|ms|s|ticks)$/.exec(text);
  return Math.round(Number(number.replace(/[, ]/g, "")) * { ticks: 1, ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[unit]);
}

/** What the page tells of the place under the pointer. */
async function toldAt(page, x, y) {
  await page.mouse.move(x, y);
  await frame(page);
  await settle(page);
  return page.evaluate(() => {
    const cell = (title) => document.querySelector(`#status .cell[title='${title}']`)?.textContent ?? "";
    return { lane: cell("Lane"), what: cell("Function"), share: cell("Share"), lost: cell("Lost") };
  });
}

/** The parts of the page that are looked at: where the plot and the lane are. */
function geometry(page, stream) {
  return page.evaluate((name) => {
    const { left, top, width } = document.querySelector("#timeline").getBoundingClientRect();
    const head = [...document.querySelectorAll(".head")].find((h) => h.dataset.id.split("/").at(-1) === name);
    return { left, top, width, lane: head.offsetTop };
  }, stream);
}

/** Colours of the band of functions around a pixel. */
const colours = (page, x, y) => page.evaluate(([px, py, h]) => {
  const { data } = document.querySelector("canvas.base").getContext("2d").getImageData(px - 2, py, 5, h);
  return [...Array(5 * h)].map((_, i) => `rgb(${[...data.subarray(4 * i, 4 * i + 3)].join(", ")})`);
}, [Math.round(x), y, BAND]);
const detail = (page, name) => page.evaluate((n) => [...document.querySelectorAll(".details div")].find((d) => d.querySelector("dt").textContent === n)?.querySelector("dd").textContent, name);

class Spots {
  constructor(page, base, told, truth, how) {
    Object.assign(this, { page, base, truth, ...how });
    this.trace = told;
    this.zero = Math.min(...told.streams.filter((s) => s.has_time).map((s) => Number(s.time_first)));
    this.n = 0;
  }

  /** Check `n` spots in a view. */
  async view(stream, axis, from, to, n, random) {
    const { page } = this;
    const truth = this.truth.get(stream.name);
    const bound = (at) => (axis === "insn" ? at : Math.round(at));
    await open(page, this.base, `#/trace/${this.trace.id}?axis=${axis}&lane=${stream.name}&from=${bound(from)}&to=${bound(to)}&panel=insns`);
    const seen = await geometry(page, stream.name);
    const perPixel = (to - from) / seen.width;
    const base = this.trace.tile_base[axis];
    const level = Math.max(0, Math.ceil((Math.log2(perPixel) - base) / 2 - 1e-9));
    const wide = 2 ** (base + 2 * level);
    for (let i = 0; i < n; i++) {
      const x = Math.floor(8 + random() * (seen.width - 16));
      const at = from + x * perPixel;
      const first = Math.floor(at / wide) * wide;
      let only = ""; // the one function that ran in the bucket
      const where = `${this.trace.id} ${stream.name} ${axis} ${from}..${to} x=${x} at=${at} bucket ${first}+${wide}`;
      if (truth.fns.length > 0) {
        const told = await toldAt(page, seen.left + x, seen.top + seen.lane + MARKS + 12);
        assert.equal(told.lane, stream.name, where);
        if (axis === "insn") this.byInsns(truth, told, first, wide, where);
        else this.byTime(stream, truth, told, first, wide, where);
        if (i === 0 && told.share === "" && told.lost === "") only = this.name(told);
      }
      if (i === 0 || truth.fns.length === 0) await this.click(stream, axis, x, seen, at, perPixel, only, where);
      this.n++;
    }
  }

  /** The function that is told, without offset and instruction. */
  name({ what }) {
    return what.split("  ")[0].replace(/\+0x[0-9a-f]+$/, "");
  }

  byInsns(truth, told, first, wide, where) {
    if (told.what.includes("  ")) { // a single instruction
      const { name, offset } = truth.fns[first];
      assert.equal(wide, 1, where);
      assert.equal(told.what.split("  ")[0], name === "" || name.startsWith("page ") ? `0x${truth.pcs[first].replace(/^0+(?=.)/, "")}` : `${name}${offset > 0 ? `+0x${offset.toString(16)}` : ""}`, where);
      return;
    }
    const counts = counted(truth, first, first + wide);
    if (told.share === AMONG) {
      assert.ok(counts.has(told.what), `${where}: ${told.what} did not run`);
      return;
    }
    const all = [...counts.values()].reduce((a, b) => a + b, 0);
    const here = (counts.get(this.name(told)) ?? 0) / all;
    const most = Math.max(...counts.values()) / all;
    assert.ok(here >= most - exactness(told), `${where}: ${told.what} ${told.share} has ${here}, another one ${most}`);
    const share = told.share === "" ? 1 : Number(/\d+/.exec(told.share)[0]) / 100;
    assert.ok(Math.abs(share - here) <= exactness(told) + (told.share === "" ? 0.01 : 0), `${where}: ${told.what} ${told.share}, truly ${here}`);
  }

  byTime(stream, truth, told, first, wide, where) {
    const all = this.stretches(stream);
    if (truth.pages && told.what === "unnamed code") return; // between two branches
    if (told.share === AMONG) {
      // Pages are told from one branch to the next: those around the bucket are as near as it gets.
      const [a, b] = [all.findLastIndex((s) => s.from <= first), all.findIndex((s) => s.to >= first + wide)];
      assert.ok(all.slice(Math.max(0, a - 1), b < 0 ? undefined : b + 2).some((s) => s.names.has(told.what)), `${where}: ${told.what} did not run`);
      return;
    }
    // Nothing is told to run where tracing was off or lost.
    if (/^(not traced|trace lost)$/.test(told.what)) {
      assert.ok(all.some((s) => s.hole && s.from < first + wide && s.to > first), `${where}: ${told.what}`);
      return;
    }
    const by = bounds(all, first, first + wide);
    const own = by.get(this.name(told));
    assert.ok(own && own.most > 0, `${where}: ${told.what} did not run, but ${[...by.keys()]}`);
    const other = Math.max(0, ...[...by].filter(([name]) => name !== this.name(told)).map(([, b]) => b.least));
    assert.ok(own.most >= other - exactness(told) * wide, `${where}: ${told.what} ran at most ${own.most}, another at least ${other}`);
    if (told.lost !== "") return; // the share is that of what ran
    const share = told.share === "" ? 1 : Number(/\d+/.exec(told.share)[0]) / 100;
    assert.ok(share >= own.least / wide - exactness(told) && share <= own.most / wide + exactness(told), `${where}: ${told.what} ${told.share}, truly ${own.least / wide} to ${own.most / wide}`);
  }

  stretches(stream) {
    this.made ??= new Map();
    const known = this.made.get(stream.name) ?? stretches(this.truth.get(stream.name), this.unit, this.slack);
    this.made.set(stream.name, known);
    return known;
  }

  /** A click finds the instruction that was executed there, or the record, and tells its time. */
  async click(stream, axis, x, seen, at, perPixel, only, where) {
    const { page } = this;
    const truth = this.truth.get(stream.name);
    await page.mouse.click(seen.left + x, seen.top + seen.lane + MARKS + 12);
    await page.waitForFunction(() => /Trace byte[\d,]/.test(document.querySelector(".details")?.textContent ?? ""));
    await settle(page);
    const n = Number((await detail(page, truth.fns.length > 0 ? "Instruction" : "Record")).replaceAll(",", ""));
    if (truth.fns.length > 0) assert.equal(BigInt(await detail(page, "PC")), BigInt(`0x${truth.pcs[n]}`), `${where}: instruction ${n}`);
    // The band has the colour that the panel shows beside the name.
    if (only !== "" && truth.fns[n].name === only && !only.startsWith("page ")) {
      const colour = await page.evaluate(() => getComputedStyle(document.querySelector(".details .swatch")).backgroundColor);
      assert.ok((await colours(page, x, seen.lane + MARKS)).includes(colour), `${where}: ${only} is not ${colour}`);
    }
    const near = Math.max(1, perPixel * SNAP);
    if (axis === "insn") assert.ok(Math.abs(n - at) <= near, `${where}: position ${n}`);
    if (!stream.has_time) return;
    // It was executed between the last time before it and the first one behind it.
    const k = truth.knots.findLastIndex(([position]) => position <= n);
    const [earliest, latest] = [(truth.knots[k]?.[1] ?? -Infinity) * this.unit - this.slack, (truth.knots[k + 1]?.[1] ?? Infinity) * this.unit + this.slack];
    const time = readTime(await detail(page, "Time")) + this.zero;
    assert.ok(earliest - 1 <= time && time <= latest + 1, `${where}: position ${n} at ${time} ran from ${earliest} to ${latest}`);
    // The next one that is reached may be told, since nothing is known to run in a gap.
    const before = (truth.knots[k - 1]?.[1] ?? -Infinity) * this.unit - this.slack;
    if (axis === "time") assert.ok(before - near <= at && at <= latest + near, `${where}: position ${n} ran from ${earliest} to ${latest}`);
  }
}

/** The views of all streams: of each axis, from all of it to a few units of it, at random places. */
function viewsOf(told, truth, zooms, random) {
  const views = [];
  for (const stream of told.streams) {
    if (!truth.get(stream.name)?.pcs.length) continue;
    for (const axis of ["insn", "time"]) {
      if (axis === "time" && !stream.has_time) continue;
      const [first, last] = axis === "insn" ? [0, Number(stream.insns)] : [Number(stream.time_first), Number(stream.time_last)];
      for (let z = 0; z < zooms; z++) {
        const size = (last - first) * (NARROWEST / (last - first)) ** (z / Math.max(1, zooms - 1));
        const from = Math.floor(first + random() * (last - first - size));
        views.push([stream, axis, from, Math.ceil(from + size)]);
      }
    }
  }
  return views;
}

/** Spots in all streams of rigs: at least so many in all, as many in each rig and in each of its views. */
export async function truthChecks(suite, lab, { spots: wanted, zooms = ZOOMS, seed = 1, kinds = ["etm", "pt", "di", "cortex-m"] }) {
  let all = 0;
  for (const kind of kinds) {
    const { id, truth, elf, clock, slack } = await lab.truth(kind, seed);
    await suite.check(`truth: ${kind} at ${zooms} zooms of each axis`, {}, async (page) => {
      const told = await (await fetch(`${lab.url}/api/v1/traces/${id}`)).json();
      const unit = clock > 0 ? 1e9 / clock : 1;
      const spots = new Spots(page, lab.url, told, readTruth(fs.readFileSync(truth, "utf8"), functionsOf(elf)), { unit, slack: slack * unit });
      const random = randomOf(seed);
      const views = viewsOf(told, spots.truth, zooms, random);
      const each = Math.ceil(wanted / kinds.length / views.length);
      for (const [stream, axis, from, to] of views) await spots.view(stream, axis, from, to, each, random);
      assert.ok(spots.n > 0);
      all += spots.n;
      console.log(`      ${spots.n} spots, ${views.length} views`);
    });
  }
  console.log(`truth: ${all} spots, seed ${seed}`);
}
