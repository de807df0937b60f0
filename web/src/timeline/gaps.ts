// SPDX-License-Identifier: MIT
// Gaps in the trace, drawn over the lanes. On the time axis a gap reaches from the last known time
// to the next one and shows how long it may have been and why; on the instruction axis it lies
// between two instructions.
import { reasons } from "./describe.ts";
import { duration, short } from "../base/format.ts";
import { toPixel, type Extent, type View } from "../base/scale.ts";
import { FLAG, isOff, offText, TILE_BUCKETS, type Break, type Columns, type Stripe } from "../data/tile.ts";
import type { Colours } from "./colours.ts";
import { measured, SANS, setFont, type Cuts } from "./labels.ts";
import type { LaneBox } from "./layout.ts";
import { lossOf, offLines } from "./paint.ts";

const PATTERN = 7;
const patterns = new Map<string, CanvasPattern>();

/** Diagonal lines as painted by hatch(), on the background. */
function pattern(ctx: CanvasRenderingContext2D, css: string, ground: string): CanvasPattern {
  const key = css + ground;
  let made = patterns.get(key);
  if (!made) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = PATTERN;
    const c = canvas.getContext("2d")!;
    c.fillStyle = ground;
    c.fillRect(0, 0, PATTERN, PATTERN);
    c.fillStyle = css;
    for (let y = 0; y < PATTERN; y++) {
      for (let x = 0; x < PATTERN; x++) if ((x + y) % PATTERN < 2) c.fillRect(x, y, 1, 1);
    }
    made = ctx.createPattern(canvas, "repeat")!;
    patterns.set(key, made);
  }
  return made;
}

/** Maximum duration and reason: "≤ 3.2 µs, overflow". */
export function breakText(b: Break, ns: boolean): string {
  const why = isOff(b.flags) ? offText(b.flags) : reasons(b.flags);
  const wide = b.to - b.from;
  return wide <= 0 ? why : `≤ ${ns ? duration(wide) : `${short(wide)} ticks`}, ${why}`;
}

/** As much of a text as fits, in whole parts from its begin: a truncated number would be wrong. */
export function whole(text: string, room: number, wide: (text: string) => number): string {
  return [text, text.split(", ")[0]!].find((t) => wide(t) <= room) ?? "";
}

/** What of a tile is still being indexed. */
export function behindOf(stripe: Stripe, columns: Columns): readonly Span[] {
  const to = stripe.first + stripe.bucket * TILE_BUCKETS;
  return columns.behindFrom < to ? [{ from: Math.max(stripe.first, columns.behindFrom), to }] : [];
}

/** Sparse dots, and words where there is room: neither idle, nor a gap, nor a guess. `end`: of the lane, on the axis. */
export function drawBehind(
  ctx: CanvasRenderingContext2D, all: readonly Span[], end: number, view: View, top: number, box: LaneBox, colours: Colours, width: number, ground: string,
): void {
  const from = Math.min(...all.map((s) => s.from)), to = Math.min(end, Math.max(...all.map((s) => s.to)));
  const [x0, x1] = [Math.max(0, Math.round(toPixel(view, width, from))), Math.min(width, Math.round(toPixel(view, width, to)))];
  if (x1 <= x0) return;
  const [y, h] = [top + box.fn.y, box.h - box.fn.y - 4];
  ctx.fillStyle = ground;
  ctx.fillRect(x0, y, x1 - x0, h);
  ctx.fillStyle = colours.named.muted.css;
  for (let x = x0 + 3; x < x1; x += 8) for (let dy = 3; dy < h; dy += 8) ctx.fillRect(x, y + dy, 2, 2);
  if (box.fn.h < 12) return;
  setFont(ctx, `500 11px ${SANS}`);
  ctx.textBaseline = "middle";
  const text = whole("being indexed", x1 - x0 - 14, (t) => measured(ctx, t));
  if (text === "") return;
  const wide = measured(ctx, text);
  const [x, middle] = [(x0 + x1 - wide) / 2, y + box.fn.h / 2];
  ctx.fillStyle = ground;
  ctx.fillRect(x - 4, middle - 8, wide + 8, 16);
  ctx.fillStyle = colours.named.muted.css;
  ctx.fillText(text, x, middle + 0.5);
}

export function drawTimeBreaks(
  ctx: CanvasRenderingContext2D, breaks: readonly Break[], view: View, top: number, box: LaneBox,
  colours: Colours, width: number, ns: boolean, ground: string,
): void {
  for (const b of breaks) {
    const x0 = Math.max(0, Math.round(toPixel(view, width, b.from)));
    const x1 = Math.min(width, Math.round(toPixel(view, width, b.to)));
    if (x1 - x0 < 2) continue;
    const off = isOff(b.flags);
    const y = top + box.fn.y;
    const h = box.h - box.fn.y - 4;
    const colour = colours.named[lossOf(b.flags)].css;
    ctx.fillStyle = off ? ground : pattern(ctx, colour, ground);
    ctx.fillRect(x0, y, x1 - x0, h);
    if (off) {
      ctx.fillStyle = colours.named.density.css;
      for (const line of offLines(box.fn.h, (b.flags & FLAG.switchedOut) !== 0)) ctx.fillRect(x0, y + line, x1 - x0, 1);
    }
    if (box.fn.h < 12) continue;
    setFont(ctx, `500 11px ${SANS}`);
    ctx.textBaseline = "middle";
    const text = whole(breakText(b, ns), x1 - x0 - 14, (t) => measured(ctx, t));
    if (text === "") continue;
    const wide = measured(ctx, text);
    const x = (x0 + x1 - wide) / 2;
    const middle = y + box.fn.h / 2;
    ctx.fillStyle = ground;
    ctx.fillRect(x - 4, middle - 8, wide + 8, 16);
    ctx.fillStyle = off ? colours.named.muted.css : colour;
    ctx.fillText(text, x, middle + 0.5);
  }
}

/**
 * Tracing was off without a gap in the trace: buckets in which nothing ran and nothing was lost.
 */
export function drawUntold(
  ctx: CanvasRenderingContext2D, all: readonly Span[], breaks: readonly Break[], view: View, top: number, box: LaneBox,
  colours: Colours, width: number, ns: boolean, ground: string,
): void {
  if (box.fn.h < 12) return;
  setFont(ctx, `500 11px ${SANS}`);
  ctx.textBaseline = "middle";
  for (const { from, to, flags = 0 } of all) {
    const [x0, x1] = [Math.max(0, toPixel(view, width, from)), Math.min(width, toPixel(view, width, to))];
    if (x1 - x0 < 60 || breaks.some((b) => b.to > b.from && b.from < to && b.to > from)) continue;
    const text = whole(`~ ${ns ? duration(to - from) : `${short(to - from)} ticks`}, ${offText(flags)}`, x1 - x0 - 14, (t) => measured(ctx, t));
    if (text === "") continue;
    const wide = measured(ctx, text);
    const [x, y] = [(x0 + x1 - wide) / 2, top + box.fn.y + box.fn.h / 2];
    ctx.fillStyle = ground;
    ctx.fillRect(x - 4, y - 8, wide + 8, 16);
    ctx.fillStyle = colours.named.muted.css;
    ctx.fillText(text, x, y + 0.5);
  }
}

/**
 * Add the breaks of the next tile to the right, which includes those that extend into it; there may
 * be several before one instruction.
 */
export function addBreaks(all: Break[], next: readonly Break[]): void {
  const last = all[all.length - 1];
  all.push(...next.filter((b) => !last || b.position > last.position || (b.position === last.position && b.from > last.from)));
}

export interface Span {
  readonly from: number;
  readonly to: number;
  readonly flags?: number; // FLAG.switchedOut, or 0
}

const emptyIn = new WeakMap<Columns, readonly Span[]>();

/** Of a span that a bucket is in. */
function flagsOf(columns: Columns, b: number): number {
  return columns.switchedOut[b]! > 127 ? FLAG.switchedOut : 0;
}

/** Where in a tile nothing ran and nothing was lost; computed once. */
export function untold(stripe: Stripe, columns: Columns): readonly Span[] {
  let known = emptyIn.get(columns);
  if (known) return known;
  const out: Span[] = [];
  const end = Math.min(TILE_BUCKETS, Math.floor((columns.behindFrom - stripe.first) / stripe.bucket));
  for (let b = 0; b < end;) {
    const first = b;
    const flags = flagsOf(columns, b);
    while (b < end && columns.coverage[b] === 0 && columns.lost[b] === 0 && flagsOf(columns, b) === flags) b++;
    if (b > first) out.push({ from: stripe.first + first * stripe.bucket, to: stripe.first + b * stripe.bucket, flags });
    else b++;
  }
  emptyIn.set(columns, known = out);
  return known;
}

/** Merge spans that touch, across tile boundaries, within the lane. */
export function joinedSpans(all: readonly Span[], { first, last }: Extent): Span[] {
  const out: Span[] = [];
  for (const span of all) {
    const before = out[out.length - 1];
    if (before && span.from <= before.to && span.flags === before.flags) out[out.length - 1] = { ...before, to: Math.max(before.to, span.to) };
    else out.push(span);
  }
  // Before its first instruction and after its last one a lane has no information.
  return out.filter((s) => s.from > first && s.to < last);
}

/** What these are drawn over, in pixels. */
export function cutsOf(breaks: readonly Break[], view: View, width: number): Cuts {
  return breaks.map((b): readonly [number, number] => {
    if (view.axis === "time") return [toPixel(view, width, b.from), toPixel(view, width, b.to)];
    const x = Math.round(toPixel(view, width, b.position));
    return [x - CUT, x + CUT + 1];
  }).filter(([from, to]) => to > 0 && from < width && to - from >= 2);
}

/** Half of the width of a cut. */
const CUT = 2;

/** A cut through the lane, with a wedge at its top. */
export function drawInsnBreaks(
  ctx: CanvasRenderingContext2D, breaks: readonly Break[], view: View, top: number, box: LaneBox,
  colours: Colours, width: number, ground: string,
): void {
  for (const b of breaks) {
    const x = Math.round(toPixel(view, width, b.position));
    if (x < -4 || x > width + 4) continue;
    const y = top + box.marks.y;
    const bottom = top + box.h - 4;
    ctx.fillStyle = ground;
    ctx.fillRect(x - CUT, y, 2 * CUT + 1, bottom - y);
    ctx.fillStyle = isOff(b.flags) ? colours.named.muted.css : colours.named[lossOf(b.flags)].css;
    ctx.fillRect(x, y, 1, bottom - y);
    ctx.beginPath();
    ctx.moveTo(x - 5, y);
    ctx.lineTo(x + 6, y);
    ctx.lineTo(x + 0.5, y + Math.max(5, box.marks.h));
    ctx.fill();
  }
}
