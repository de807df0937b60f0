// SPDX-License-Identifier: MIT
// Text and exact rectangles over the painted lanes, in CSS pixels.
import { shortAddress, shorterNames } from "../base/format.ts";
import type { InsnCache } from "../data/insns.ts";
import type { Slice } from "../data/model.ts";
import type { View } from "../base/scale.ts";
import { runs as isRunning, TILE_BUCKETS, type Columns, type Stripe } from "../data/tile.ts";
import type { Colours } from "./colours.ts";
import type { LaneBox } from "./layout.ts";

export const SANS = '"Inter", system-ui, sans-serif';
export const MONO = '"JetBrains Mono", ui-monospace, monospace';

/** Shorter labels are useless. */
export const LEAST_LABEL = 28;
/** A run keeps its name with up to this share (of 255) of its own function. */
const PURE = 190;
/** A name is not written across a strip of another function from this width on. */
const STRIP = 6;

const widths = new Map<string, number>();
let font = "";
let fontOf: CanvasRenderingContext2D | undefined; // the canvas that has it

/**
 * Font for measuring and drawing from now on: reading a canvas' font takes longer than measuring, and setting the one
 * that it has as long as drawing a text.
 */
export function setFont(ctx: CanvasRenderingContext2D, to: string): void {
  if (ctx === fontOf && to === font) return;
  ctx.font = font = to;
  fontOf = ctx;
}

/** A canvas' state was restored, or it has lost it: its font is another one. */
export function forgetFont(): void {
  fontOf = undefined;
}

export function measured(ctx: CanvasRenderingContext2D, text: string): number {
  const key = font + text;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 4000) widths.clear();
    width = ctx.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/** `text` cut to `room` pixels; "" if not even three letters fit. */
export function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  const width = measured(ctx, text);
  if (width <= room) return text;
  const letters = Math.floor((room / width) * text.length) - 1;
  return letters >= 3 ? `${text.slice(0, letters)}…` : "";
}

/** The longest form of a function's name that fits into `room` pixels, or the shortest one, cut. */
export function fittedName(ctx: CanvasRenderingContext2D, name: string, room: number): string {
  if (measured(ctx, name) <= room) return name;
  const names = shorterNames(name);
  return names.find((one) => measured(ctx, one) <= room) ?? fitted(ctx, names[names.length - 1]!, room);
}

/** What is drawn over labels, in pixels, from left to right. */
export type Cuts = readonly (readonly [number, number])[];

/** The widest part of [x0, x1] over which nothing is drawn: where its label is. */
export function uncut(x0: number, x1: number, cuts: Cuts): readonly [number, number] {
  let best: readonly [number, number] = [x0, x0];
  let at = x0;
  const consider = (to: number): void => {
    if (to - at > best[1] - best[0]) best = [at, to];
  };
  for (const [from, to] of cuts) {
    if (to <= at) continue;
    if (from >= x1) break;
    consider(from);
    at = to;
  }
  consider(x1);
  return best;
}

export interface Run {
  readonly x0: number;
  readonly x1: number;
  readonly fn: number; // id + 1
}

const runsOf = new WeakMap<Columns, readonly { b0: number; b1: number; fn: number }[]>();

/** Neighbouring buckets of one function, computed once. */
function bucketRuns(columns: Columns): readonly { b0: number; b1: number; fn: number }[] {
  let known = runsOf.get(columns);
  if (known) return known;
  const out: { b0: number; b1: number; fn: number }[] = [];
  let start = 0;
  for (let b = 1; b <= TILE_BUCKETS; b++) {
    if (b < TILE_BUCKETS && columns.fn[b] === columns.fn[start] && pure(columns, b)) continue;
    if (columns.fn[start]! > 0 && pure(columns, start)) out.push({ b0: start, b1: b, fn: columns.fn[start]! });
    start = b;
  }
  runsOf.set(columns, known = out);
  return known;
}

/** Visible runs in pixels, without those that are too narrow to be seen as such. */
export function runs(stripe: Stripe, columns: Columns, view: View, width: number, end: number): Run[] {
  return visible(bucketRuns(columns), stripe, view, width, end);
}

function visible(
  all: readonly { b0: number; b1: number; fn: number }[], stripe: Stripe, view: View, width: number, end: number,
): Run[] {
  const scale = width / (view.to - view.from);
  const wide = stripe.bucket * scale;
  const left = (stripe.first - view.from) * scale;
  const right = Math.min(width, end);
  const out: Run[] = [];
  for (const { b0, b1, fn } of all) {
    if (left + b1 * wide <= 0) continue;
    if (left + b0 * wide >= right) break;
    // At an edge of the tile it may continue in the next one.
    if ((b1 - b0) * wide < STRIP && b0 > 0 && b1 < TILE_BUCKETS) continue;
    out.push({ x0: left + b0 * wide, x1: Math.min(end, left + b1 * wide), fn });
  }
  return out;
}

/** Buckets that are looked at together where they change too often for a name each. */
const GROUP = 16;
const mainsOf = new WeakMap<Columns, readonly { b0: number; b1: number; fn: number }[]>();

/** Groups of buckets of which most is one function, computed once. */
function groupRuns(columns: Columns, timed: boolean): readonly { b0: number; b1: number; fn: number }[] {
  const known = mainsOf.get(columns);
  if (known) return known;
  const out: { b0: number; b1: number; fn: number }[] = [];
  const parts = new Map<number, number>();
  for (let b0 = 0; b0 < TILE_BUCKETS; b0 += GROUP) {
    parts.clear();
    let all = timed ? GROUP * 255 : 0;
    for (let b = b0; b < b0 + GROUP; b++) {
      const weight = timed ? columns.coverage[b]! : columns.insns[b]!;
      if (!timed) all += weight;
      const alone = columns.share[b] === 0 && columns.share2[b] === 0;
      for (const [fn, share] of [[columns.fn[b]!, alone ? 255 : columns.share[b]!], [columns.fn2[b]!, columns.share2[b]!]] as const) {
        if (fn > 0) parts.set(fn, (parts.get(fn) ?? 0) + (weight * share) / 255);
      }
    }
    for (const [fn, part] of parts) if (part * 255 >= all * PURE && all > 0) out.push({ b0, b1: b0 + GROUP, fn });
  }
  mainsOf.set(columns, out);
  return out;
}

/** Visible stretches of which most is one function, in pixels: names for where there is no longer run. */
export function mains(stripe: Stripe, columns: Columns, view: View, width: number, end: number): Run[] {
  return visible(groupRuns(columns, view.axis === "time"), stripe, view, width, end);
}

function pure(columns: Columns, b: number): boolean {
  return isRunning(columns, b) && columns.share[b]! >= PURE && columns.coverage[b]! >= PURE;
}

/** Join runs that touch across tile boundaries. */
export function joined(all: readonly Run[]): Run[] {
  const out: Run[] = [];
  for (const run of all) {
    const last = out[out.length - 1];
    if (last && last.fn === run.fn && run.x0 - last.x1 < 1) {
      out[out.length - 1] = { ...last, x1: run.x1 };
    } else {
      out.push(run);
    }
  }
  return out;
}

/** Names of runs, and in what is left of those stretches of which they are most, `mains`. */
export function drawRuns(
  ctx: CanvasRenderingContext2D, all: readonly Run[], top: number, box: LaneBox, colours: Colours,
  nameOf: (id: number) => string, width: number, borders: boolean, cuts: Cuts = [], most: readonly Run[] = [],
): void {
  if (box.fn.h < 12) return;
  setFont(ctx, `500 11px ${SANS}`);
  ctx.textBaseline = "middle";
  const y = top + box.fn.y + box.fn.h / 2 + 0.5;
  const taken: (readonly [number, number])[] = [];
  const name = (run: Run, over: Cuts): void => {
    if (run.x1 - run.x0 < LEAST_LABEL) return;
    const [x0, x1] = uncut(Math.max(0, run.x0), Math.min(width, run.x1), over);
    if (x1 - x0 < LEAST_LABEL) return;
    const text = fittedName(ctx, nameOf(run.fn - 1), x1 - x0 - 10);
    if (text === "") return;
    ctx.fillStyle = colours.code(run.fn, 0).ink;
    ctx.fillText(text, x0 + 5, y);
    taken.push([run.x0, run.x1]); // once
  };
  const own = joined(all);
  for (const run of own) {
    if (borders && run.x0 > 0 && run.x1 - run.x0 >= 8) {
      ctx.fillStyle = colours.named.ground.css;
      ctx.fillRect(Math.round(run.x0), top + box.fn.y, 1, box.fn.h);
    }
    name(run, cuts);
  }
  if (most.length === 0) return;
  const used = [...cuts, ...taken];
  const strips = own.filter((run) => run.x1 - run.x0 >= STRIP);
  for (const run of joined(most)) {
    if (run.x1 - run.x0 < LEAST_LABEL) continue;
    const others = strips.filter((o) => o.fn !== run.fn && o.x1 > run.x0 && o.x0 < run.x1).map((o) => [o.x0, o.x1] as const);
    name(run, [...used, ...others].sort((x, y) => x[0] - y[0]));
  }
}

/** Text in a lane with nothing to draw, on the background if there is something else. */
export function drawNote(
  ctx: CanvasRenderingContext2D, all: string, top: number, box: LaneBox, colours: Colours, width: number, ground = "",
): void {
  setFont(ctx, `400 11px ${SANS}`);
  ctx.textBaseline = "middle";
  const y = top + box.fn.y + box.fn.h / 2;
  const text = fitted(ctx, all, width - 20);
  if (ground !== "") {
    ctx.fillStyle = ground;
    ctx.fillRect(8, y - 8, measured(ctx, text) + 8, 16);
  }
  ctx.fillStyle = colours.named.muted.css;
  ctx.fillText(text, 12, y + 0.5);
}

/**
 * Colour of the innermost call that is wide enough to be visible, per pixel; 0 if there is none.
 */
export function innermost(slices: readonly Slice[], view: View, width: number, colours: Colours): Uint32Array {
  const out = new Uint32Array(width);
  const scale = width / (view.to - view.from);
  for (const slice of [...slices].sort((a, b) => a.depth - b.depth)) {
    if (slice.name === "" || slice.to <= view.from || slice.from >= view.to) continue;
    const x0 = Math.max(0, Math.round((slice.from - view.from) * scale));
    const x1 = Math.min(width, Math.max(x0 + 1, Math.round((slice.to - view.from) * scale)));
    if (x1 > x0) out.fill(colours.named_(slice.name).rgba, x0, x1);
  }
  return out;
}

/** Width of an instruction in pixels that has space for text, at least its mnemonic. */
export const TEXT_CELL = 24;
const OPERANDS = 60;
/** Below this width it is written smaller, and closer to its edges. */
const ROOMY = 32;

/** Single instructions: borders, and their text if there is space. */
export function drawInsns(
  ctx: CanvasRenderingContext2D, cache: InsnCache, view: View, top: number, box: LaneBox,
  colours: Colours, width: number, end: number,
): void {
  const wide = width / (view.to - view.from);
  const first = Math.max(0, Math.floor(view.from));
  const last = Math.min(end, Math.ceil(view.to));
  const y = top + box.fn.y;
  ctx.fillStyle = colours.named.ground.css;
  ctx.globalAlpha = 0.45;
  for (let i = first + 1; i < last; i++) {
    ctx.fillRect(Math.round((i - view.from) * wide), y, 1, box.fn.h);
  }
  ctx.globalAlpha = 1;
  // With many lanes there is no space below the functions: the text is drawn on them.
  const band = box.density.h >= 10 ? box.density : box.fn;
  if (wide < TEXT_CELL || band.h < 10) return;
  const [size, pad] = wide < ROOMY ? [9, 2] : [10, 5];
  setFont(ctx, `400 ${size}px ${MONO}`);
  ctx.textBaseline = "middle";
  const textY = top + band.y + band.h / 2 + 0.5;
  for (let i = first; i < last; i++) {
    const row = cache.get(i);
    if (!row) continue;
    const x = Math.max(0, (i - view.from) * wide);
    const room = (i + 1 - view.from) * wide - x - pad - 1;
    if (band === box.density) {
      ctx.fillStyle = colours.named.ground.css;
      ctx.fillRect(x + 1, top + band.y, room + pad - 1, band.h);
    }
    const said = row.text || shortAddress(row.pc);
    const text = fitted(ctx, wide < OPERANDS ? said.split(" ", 1)[0]! : said, room);
    if (text === "") continue;
    ctx.fillStyle = band === box.density ? colours.named.ink.css : colours.named_(row.fn).ink;
    ctx.fillText(text, x + pad, textY);
  }
}
