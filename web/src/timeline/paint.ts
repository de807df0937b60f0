// SPDX-License-Identifier: MIT
// Lanes from tiles into pixels: one pass over the buckets in view, columns written straight into
// a Uint32 view of ImageData. The cost depends on the pixels, not on the trace.
import type { Extent, View } from "../scale.ts";
import { EVENT, FLAG_LOST, FLAG, isOff, runs, TILE_BUCKETS, type Columns, type Stripe } from "../tile.ts";
import type { Colours } from "./colours.ts";
import type { LaneBox } from "./layout.ts";
import { STACK_ROW } from "./layout.ts";

export interface Target {
  readonly pixels: Uint32Array;
  readonly width: number;
  readonly height: number;
}

/** What one call paints: a lane's columns within [x0, x1). `top`: of the lane, may be < 0. */
export interface Job {
  readonly view: View;
  readonly box: LaneBox;
  readonly top: number;
  readonly extent: Extent; // of the lane
  readonly stripe: Stripe;
  readonly columns: Columns;
  readonly x0: number;
  readonly x1: number;
  readonly silhouette: boolean; // depth as an outline: not all slices are drawn over it
  readonly exact: boolean; // of the level asked for; else it stands in, and looks like it
  readonly targets?: Uint32Array; // of code without symbols: the colour of the call at each pixel, 0: not known
  readonly share?: boolean; // the height tells how much of the bucket was traced, on either axis
  readonly moments: boolean; // software trace: nothing goes on between two messages
}

/** From this width on a bucket that stands in would be taken for what it is not. */
const COARSE = 12;

/** Branches are seldom more than a third of the instructions: that fills the plot. */
const DENSITY_FULL = 96;

export function paint(target: Target, job: Job, colours: Colours): void {
  const { view, stripe, columns } = job;
  const scale = target.width / (view.to - view.from);
  const wide = stripe.bucket * scale;
  const left = (stripe.first - view.from) * scale;
  const end = (job.extent.last - view.from) * scale;
  const b0 = Math.max(0, Math.floor((job.x0 - left) / wide) - 1);
  const b1 = Math.min(TILE_BUCKETS, Math.ceil((job.x1 - left) / wide) + 1);
  let flags = 0;
  let events = 0;
  for (let b = b0; b < b1; b++) {
    const from = left + b * wide;
    if (from >= end) break;
    // Buckets narrower than a pixel leave their marks to the next one that has a pixel.
    flags |= columns.flags[b]!;
    events |= columns.events[b]!;
    const x0 = Math.max(job.x0, Math.round(from));
    // As the next bucket's left edge is reckoned, so that none is left out between them.
    const x1 = Math.min(job.x1, Math.round(Math.min(left + (b + 1) * wide, end)));
    if (x1 <= x0) continue;
    column(target, job, colours, b, x0, x1, flags, events, wide);
    flags = 0;
    events = 0;
  }
  if (job.silhouette && job.box.stack.h > 0) silhouette(target, job, colours, b0, b1, left, wide, end);
  if (job.exact) return;
  fade(target, job, colours.named.ground.rgba);
  if (wide >= COARSE) {
    const x1 = Math.min(job.x1, Math.round(end));
    unknown(target, job.box, job.top, job.x0, x1, colours.named.muted.rgba);
  }
}

/** What stands in for a tile that is under way is half let through to the ground. */
function fade(target: Target, job: Job, ground: number): void {
  const { pixels, width, height } = target;
  const half = (ground >>> 1) & 0x7f7f7f7f;
  const bottom = Math.min(job.top + job.box.h, height);
  for (let y = Math.max(0, job.top); y < bottom; y++) {
    for (let i = y * width + job.x0; i < y * width + job.x1; i++) {
      const p = pixels[i]!;
      if (p !== 0) pixels[i] = (((p >>> 1) & 0x7f7f7f7f) + half) | 0xff000000;
    }
  }
}

/** A part of a lane of which nothing is known yet: dots, which no trace is drawn as. */
export function unknown(
  target: Target, box: LaneBox, top: number, x0: number, x1: number, rgba: number,
): void {
  const bottom = Math.min(top + box.fn.y + box.fn.h, target.height);
  for (let y = Math.max(0, top + box.fn.y); y < bottom; y++) {
    if ((y - top) % 4 !== 0) continue;
    for (let x = x0 + ((y - top) % 8 === 0 ? 0 : 2); x < x1; x += 4) target.pixels[y * target.width + x] = rgba;
  }
}

/** The depth of the call stack; neighbours of the same depth are one rectangle. */
function silhouette(
  target: Target, job: Job, colours: Colours, b0: number, b1: number, left: number, wide: number,
  end: number,
): void {
  const c = job.columns;
  const depths = (b: number): number =>
    (b < b1 && runs(c, b) ? (c.depthMin[b]! << 8) | c.depthMax[b]! : 0);
  const edge = (b: number): number => Math.round(Math.min(left + b * wide, end));
  for (let b = b0; b < b1;) {
    const same = depths(b);
    let next = b + 1;
    while (next < b1 && depths(next) === same) next++;
    const x0 = Math.max(job.x0, edge(b));
    const x1 = Math.min(job.x1, edge(next));
    if (same !== 0 && x1 > x0) depth(target, job, colours, same >> 8, same & 255, x0, x1);
    b = next;
  }
}

function column(
  target: Target, job: Job, colours: Colours, b: number, x0: number, x1: number, flags: number,
  events: number, wide: number,
): void {
  const { columns: c, box, top } = job;
  const timed = job.view.axis === "time";
  const lost = (flags & FLAG_LOST) !== 0 && !(timed && isOff(flags));
  const running = job.moments ? c.insns[b]! > 0 : runs(c, b);
  if (running && job.moments) {
    messages(target, job, colours, b, x0, x1);
  } else if (running) {
    functions(target, job, colours, b, x0, x1);
    privilege(target, job, colours, b, x0, x1);
    if (box.density.h > 0) {
      const h = Math.round(Math.min(1, c.branches[b]! / DENSITY_FULL) * box.density.h);
      const y = top + box.density.y + box.density.h - h;
      fill(target, x0, x1, y, y + h, colours.named.density.rgba);
    }
  }
  if (timed) missing(target, job, colours, b, x0, x1, flags);
  const y = top + box.marks.y;
  if (lost && (timed || job.stripe.bucket > 1 || !job.exact)) {
    // Never hidden by what else is in the bucket: a block over the whole marks band, but for a
    // stand-in, which does not tell where in its bucket that is: a line. Between two instructions
    // it is drawn by itself.
    const x = Math.max(x0 + 1, Math.min(x1, x0 + Math.max(2, Math.round(wide))));
    const h = job.exact || wide < 8 ? box.marks.h : 2;
    fill(target, x0, x, y, y + h, lostColour(flags, colours));
  } else if ((events & ~EVENT.exceptionReturn) !== 0) {
    marks(target, job, colours, b, x0, events, wide);
  }
}

export function lossOf(flags: number): "lost" | "warn" | "muted" {
  if (flags & (FLAG.overflow | FLAG.bad)) return "lost";
  if (flags & FLAG.noImage) return "warn";
  // FLAG.gap alone: something is missing and the server knows no more than that.
  return flags & (FLAG.off | FLAG.unsynced) ? "muted" : "lost";
}

function lostColour(flags: number, colours: Colours): number {
  return colours.named[lossOf(flags)].rgba;
}

/** By time: what is lost is hatched, above what ran in the same bucket; what was not traced is a line. */
function missing(
  target: Target, job: Job, colours: Colours, b: number, x0: number, x1: number, flags: number,
): void {
  const { columns: c, box, top } = job;
  const lost = c.lost[b]!;
  const y = top + box.fn.y;
  if (lost > 0) {
    const all = lost >= 128;
    const bottom = all && c.coverage[b]! < 64 ? top + box.h - 4
      : y + Math.max(3, Math.round((lost / 255) * box.fn.h));
    hatch(target, x0, x1, y, bottom, lostColour(flags, colours));
  } else if (c.coverage[b]! < 64 && !job.moments) {
    untraced(target, box, top, x0, x1, colours);
  }
}

/** A part of a lane in which nothing was traced: a line, with nothing upon it. */
export function untraced(
  target: Target, box: LaneBox, top: number, x0: number, x1: number, colours: Colours,
): void {
  const y = top + box.fn.y + (box.fn.h >> 1);
  fill(target, x0, x1, y, y + 1, colours.named.density.rgba);
}

/** Messages of software trace: as high as there are many, on a common ground. */
function messages(
  target: Target, job: Job, colours: Colours, b: number, x0: number, x1: number,
): void {
  const { box, top } = job;
  const h = Math.round(box.fn.h * Math.min(1, 0.4 + Math.log2(job.columns.insns[b]!) / 20));
  const bottom = top + box.fn.y + box.fn.h;
  fill(target, x0, x1, bottom - h, bottom, colours.faint(colours.named.software).rgba);
  fill(target, x0, Math.min(x1, x0 + 2), bottom - h, bottom, colours.named.software.rgba);
}

/** The two functions with most instructions and the rest, stacked by share; lower ids lower. */
function functions(
  target: Target, job: Job, colours: Colours, b: number, x0: number, x1: number,
): void {
  const { columns: c, box, top } = job;
  // By time, the height tells how much of the bucket was traced; by instructions all of it was.
  const h = job.view.axis === "insn" && !job.share ? box.fn.h
    : Math.max(3, Math.round((c.coverage[b]! / 255) * box.fn.h));
  const page = c.page[b]!;
  const [f1, f2] = [c.fn[b]!, c.fn2[b]!];
  // Without any share told, the one function is all there is.
  const share1 = c.share[b]! === 0 && c.share2[b]! === 0 ? 255 : c.share[b]!;
  let h1 = Math.round((share1 / 255) * h);
  let h2 = Math.min(h - h1, Math.round((c.share2[b]! / 255) * h));
  if (h - h1 - h2 <= 1) h1 = h - h2;
  if (h1 === 0 && h2 === 0) h1 = h;
  if (f2 === 0 && f1 === 0) {
    h1 += h2;
    h2 = 0;
  }
  const first = colours.code(f1, page).rgba;
  const second = colours.code(f2, 0).rgba;
  const bottom = top + box.fn.y + box.fn.h;
  const firstBelow = f2 === 0 || f1 <= f2;
  const low = firstBelow ? h1 : h2;
  if (f1 === 0 && f2 === 0 && job.targets) {
    for (let x = x0; x < x1; x++) fill(target, x, x + 1, bottom - h, bottom, job.targets[x]! || first);
    return;
  }
  fill(target, x0, x1, bottom - low, bottom, firstBelow ? first : second);
  fill(target, x0, x1, bottom - h1 - h2, bottom - low, firstBelow ? second : first);
  if (h > h1 + h2) {
    fill(target, x0, x1, bottom - h, bottom - h1 - h2, colours.named.mixed.rgba);
  }
}

function privilege(
  target: Target, job: Job, colours: Colours, b: number, x0: number, x1: number,
): void {
  const { columns: c, box, top } = job;
  const shares = c.privilege;
  const total = shares[4 * b]! + shares[4 * b + 1]! + shares[4 * b + 2]! + shares[4 * b + 3]!;
  if (total === 0) return;
  // Higher privilege on top, each at least a pixel: short visits to the kernel stay visible.
  let y = top + box.privilege.y + box.privilege.h;
  const least = top + box.privilege.y;
  for (let p = 0; p < 4 && y > least; p++) {
    const share = shares[4 * b + p]!;
    if (share === 0) continue;
    const h = Math.max(1, Math.round((share / total) * box.privilege.h));
    let rest = 0;
    for (let q = p + 1; q < 4; q++) rest += shares[4 * b + q]! > 0 ? 1 : 0;
    const up = rest === 0 ? least : Math.max(y - h, least + Math.min(rest, y - least - 1));
    fill(target, x0, x1, up, y, colours.privilege[p]!.rgba);
    y = up;
  }
}

function depth(
  target: Target, job: Job, colours: Colours, least: number, deepest: number, x0: number,
  x1: number,
): void {
  const { box, top } = job;
  const from = top + box.stack.y;
  const solid = Math.min(box.stack.h, least * STACK_ROW);
  const most = Math.min(box.stack.h, deepest * STACK_ROW);
  fill(target, x0, x1, from, from + solid, colours.named.depth.rgba);
  // Where the depth varies within the bucket.
  fill(target, x0, x1, from + solid, from + most, colours.named.depth2.rgba);
}

function marks(
  target: Target, job: Job, colours: Colours, b: number, x: number, events: number, wide: number,
): void {
  const { box, top } = job;
  const bottom = top + box.marks.y + box.marks.h;
  let share = 0.4;
  let colour = colours.named.muted;
  if (events & EVENT.exception) {
    share = 0.6 + Math.min(0.4, Math.log2(Math.max(1, job.columns.eventCount[b]!)) / 15);
    colour = colours.named.exception;
  } else if (events & EVENT.hardware) {
    share = 0.7;
    colour = colours.named.event;
  } else if (events & (EVENT.software | EVENT.note)) {
    share = 0.7;
    colour = colours.named.software;
  }
  // Where buckets are narrow, events are often in every one of them: then they are a texture.
  const thick = wide >= 6 ? 2 : 1;
  const css = wide >= 6 ? colour : colours.faint(colour);
  fill(target, x, Math.min(x + thick, job.x1), bottom - Math.ceil(share * box.marks.h), bottom, css.rgba);
}

/** Pixels [x0, x1) × [y0, y1), as far as they lie within the target. */
export function fill(
  t: Target, x0: number, x1: number, y0: number, y1: number, rgba: number,
): void {
  const { pixels, width } = t;
  const bottom = Math.min(y1, t.height);
  let row = Math.max(0, y0) * width;
  if (x1 - x0 > 16) {
    for (let y = Math.max(0, y0); y < bottom; y++, row += width) pixels.fill(rgba, row + x0, row + x1);
    return;
  }
  // A bucket is a few pixels wide: a loop is several times faster than a call for each row.
  for (let y = Math.max(0, y0); y < bottom; y++, row += width) {
    for (let x = row + x0; x < row + x1; x++) pixels[x] = rgba;
  }
}

/** Diagonal lines two pixels thick, in step with their neighbours'. */
export function hatch(
  t: Target, x0: number, x1: number, y0: number, y1: number, rgba: number,
): void {
  const bottom = Math.min(y1, t.height);
  for (let y = Math.max(0, y0); y < bottom; y++) {
    const row = y * t.width;
    for (let x = x0; x < x1; x++) {
      if ((x + y) % 7 < 2) t.pixels[row + x] = rgba;
    }
  }
}
