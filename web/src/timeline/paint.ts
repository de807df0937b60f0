// SPDX-License-Identifier: MIT
// Paints a lane's columns, one pixel per bucket, directly into a Uint32 view of ImageData, which
// pictures.ts keeps and stretches. The cost depends on the tile, not on the trace or the view.
import { EVENT, FLAG_LOST, FLAG, isOff, runs, TILE_BUCKETS, type Columns } from "../data/tile.ts";
import type { Colour } from "../view/palette.ts";
import type { Colours } from "./colours.ts";
import type { LaneBox } from "./layout.ts";

export interface Target {
  readonly pixels: Uint32Array;
  readonly width: number;
  readonly height: number;
}

/** How a lane is painted. */
export interface Look {
  readonly box: LaneBox;
  readonly timed: boolean; // on the time axis
  readonly moments: boolean; // software trace: nothing continues between two messages
  readonly share: boolean; // the height shows how much of the bucket was traced, on either axis
  readonly between: boolean; // a bucket is one instruction: losses are between two, and drawn separately
  readonly rings: boolean; // privilege counts down: ring 0 is the most powerful
  readonly targets: Uint32Array | undefined; // for code without symbols: the colour of the call in each bucket, 0: not known
}

/** A paint operation. */
interface Job extends Look {
  readonly columns: Columns;
}

/** Branches are seldom more than a third of the instructions: that fills the plot. */
const DENSITY_FULL = 96;

/** Height of the bands in a picture: everything above the call stack, except sub-lanes. */
export function areaHeight(box: LaneBox): number {
  return Math.max(...[box.marks, box.fn, box.privilege, box.density].map((band) => band.y + band.h));
}

/** The bands above the call stack, including the marks, one pixel per bucket. */
export function paintAreas(target: Target, look: Look, columns: Columns, colours: Colours): void {
  const job: Job = { ...look, columns };
  for (let b = 0; b < TILE_BUCKETS; b++) {
    column(target, job, colours, b);
    const mark = markOf(columns, b, look, colours, 1);
    if (!mark) continue;
    const bottom = look.box.marks.y + look.box.marks.h;
    fill(target, b, b + 1, bottom - mark.h, bottom, mark.colour.rgba);
  }
}

/** Only the marks, two pixels per bucket, the first of which has the mark. */
export function paintMarks(target: Target, look: Look, columns: Columns, colours: Colours): void {
  for (let b = 0; b < TILE_BUCKETS; b++) {
    const mark = markOf(columns, b, look, colours, 2);
    if (mark) fill(target, 2 * b, 2 * b + (mark.block ? 2 : 1), target.height - mark.h, target.height, mark.colour.rgba);
  }
}

/** The depth of the call stack as an outline, one pixel per bucket and level. */
export function paintDepth(target: Target, columns: Columns, colours: Colours): void {
  for (let b = 0; b < TILE_BUCKETS; b++) {
    if (!runs(columns, b)) continue;
    fill(target, b, b + 1, 0, columns.depthMin[b]!, colours.named.depth.rgba);
    // Range of the depth within the bucket.
    fill(target, b, b + 1, columns.depthMin[b]!, columns.depthMax[b]!, colours.named.depth2.rgba);
  }
}

function column(target: Target, job: Job, colours: Colours, b: number): void {
  const { columns: c, box } = job;
  const running = job.moments ? c.insns[b]! > 0 : runs(c, b);
  if (running && job.moments) {
    messages(target, job, colours, b);
  } else if (running) {
    functions(target, job, colours, b);
    privilege(target, job, colours, b);
    if (box.density.h > 0) {
      const h = Math.round(Math.min(1, c.branches[b]! / DENSITY_FULL) * box.density.h);
      const y = box.density.y + box.density.h - h;
      fill(target, b, b + 1, y, y + h, colours.named.density.rgba);
    }
  }
  if (job.timed) missing(target, job, colours, b);
}

export interface Mark {
  readonly h: number; // from the bottom of the marks' band
  readonly colour: Colour;
  readonly block: boolean; // as wide as the bucket
}

/**
 * The mark of a bucket of this width in pixels. Lost trace is never hidden by other items in the
 * bucket.
 */
export function markOf(c: Columns, b: number, look: Look, colours: Colours, wide: number): Mark | undefined {
  const [flags, events] = [c.flags[b]!, c.events[b]!];
  const { h } = look.box.marks;
  if ((flags & FLAG_LOST) !== 0 && !(look.timed && isOff(flags)) && !look.between) return { h, colour: colours.named[lossOf(flags)], block: true };
  if ((events & ~EVENT.exceptionReturn) === 0) return undefined;
  let [share, colour] = [0.4, colours.named.muted];
  if (events & EVENT.exception) {
    share = 0.6 + Math.min(0.4, Math.log2(Math.max(1, c.eventCount[b]!)) / 15);
    colour = colours.named.exception;
  } else if (events & EVENT.hardware) {
    [share, colour] = [0.7, colours.named.event];
  } else if (events & (EVENT.software | EVENT.note)) {
    [share, colour] = [0.7, colours.named.software];
  }
  // Narrow buckets often all have events: then they are drawn as a texture.
  return { h: Math.ceil(share * h), colour: wide >= 6 ? colour : colours.faint(colour), block: false };
}

export function lossOf(flags: number): "lost" | "warn" | "muted" {
  if (flags & (FLAG.overflow | FLAG.bad)) return "lost";
  if (flags & FLAG.noImage) return "warn";
  // FLAG.gap alone: something is missing for an unknown reason.
  return flags & (FLAG.off | FLAG.unsynced | FLAG.switchedOut) ? "muted" : "lost";
}

/** Rows of the lines, in a band of this height, for time in which nothing ran and nothing was lost: two where the thread was switched out. */
export function offLines(h: number, switchedOut: boolean): readonly number[] {
  const middle = h >> 1;
  return switchedOut ? [middle - 1, middle + 1] : [middle];
}

/** Time axis: lost trace is hatched, above what ran in the same bucket; untraced time is a line, or two. */
function missing(target: Target, job: Job, colours: Colours, b: number): void {
  const { columns: c, box } = job;
  const lost = c.lost[b]!;
  const { y } = box.fn;
  if (lost > 0) {
    const bottom = lost >= 128 && c.coverage[b]! < 64 ? target.height : y + Math.max(3, Math.round((lost / 255) * box.fn.h));
    hatch(target, b, b + 1, y, bottom, colours.named[lossOf(c.flags[b]!)].rgba);
  } else if (c.coverage[b]! < 64 && !job.moments) {
    for (const line of offLines(box.fn.h, c.switchedOut[b]! > 127)) fill(target, b, b + 1, y + line, y + line + 1, colours.named.density.rgba);
  }
}

/** Height of software trace messages by their number. */
export function messageHeight(box: LaneBox, n: number): number {
  return Math.round(box.fn.h * Math.min(1, 0.4 + Math.log2(n) / 20));
}

function messages(target: Target, job: Job, colours: Colours, b: number): void {
  const { fn } = job.box;
  const h = messageHeight(job.box, job.columns.insns[b]!);
  fill(target, b, b + 1, fn.y + fn.h - h, fn.y + fn.h, colours.faint(colours.named.software).rgba);
}

/**
 * The two functions with most instructions and the rest, stacked by share; lower ids at the bottom.
 */
function functions(target: Target, job: Job, colours: Colours, b: number): void {
  const { columns: c, box } = job;
  // On the time axis, the height shows how much of the bucket was traced; on the other, all of it
  // was.
  const h = !job.timed && !job.share ? box.fn.h : Math.max(3, Math.round((c.coverage[b]! / 255) * box.fn.h));
  const [f1, f2] = [c.fn[b]!, c.fn2[b]!];
  // Without shares there is only one function.
  const share1 = c.share[b]! === 0 && c.share2[b]! === 0 ? 255 : c.share[b]!;
  let h1 = Math.round((share1 / 255) * h);
  let h2 = Math.min(h - h1, Math.round((c.share2[b]! / 255) * h));
  if (h - h1 - h2 <= 1) h1 = h - h2;
  if (h1 === 0 && h2 === 0) h1 = h;
  const bottom = box.fn.y + box.fn.h;
  const first = colours.code(f1, c.page[b]!).rgba;
  if (f1 === 0 && f2 === 0) {
    fill(target, b, b + 1, bottom - h, bottom, job.targets ? job.targets[b]! || first : colours.named.mixed.rgba);
    if (!job.targets) fill(target, b, b + 1, bottom - h1 - h2, bottom, first);
    return;
  }
  const second = colours.code(f2, 0).rgba;
  const firstBelow = f2 === 0 || f1 <= f2;
  const low = firstBelow ? h1 : h2;
  fill(target, b, b + 1, bottom - low, bottom, firstBelow ? first : second);
  fill(target, b, b + 1, bottom - h1 - h2, bottom - low, firstBelow ? second : first);
  if (h > h1 + h2) fill(target, b, b + 1, bottom - h, bottom - h1 - h2, colours.named.mixed.rgba);
}

function privilege(target: Target, job: Job, colours: Colours, b: number): void {
  const { columns: c, box } = job;
  const shares = c.privilege;
  const total = shares[4 * b]! + shares[4 * b + 1]! + shares[4 * b + 2]! + shares[4 * b + 3]!;
  if (total === 0 || box.privilege.h === 0) return;
  // More power on top, each at least one pixel: short visits to the kernel stay visible.
  const shareOf = (power: number): number => shares[4 * b + (job.rings ? 3 - power : power)]!;
  const least = box.privilege.y;
  let y = least + box.privilege.h;
  for (let p = 0; p < 4 && y > least; p++) {
    const share = shareOf(p);
    if (share === 0) continue;
    const h = Math.max(1, Math.round((share / total) * box.privilege.h));
    let rest = 0;
    for (let q = p + 1; q < 4; q++) rest += shareOf(q) > 0 ? 1 : 0;
    const up = rest === 0 ? least : Math.max(y - h, least + Math.min(rest, y - least - 1));
    fill(target, b, b + 1, up, y, colours.privilege[p]!.rgba);
    y = up;
  }
}

/** Pixels [x0, x1) × [y0, y1), clipped to the target. */
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

/** Diagonal lines two pixels thick, aligned with their neighbours'. */
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
