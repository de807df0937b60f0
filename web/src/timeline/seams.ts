// SPDX-License-Identifier: MIT
// Empty time that is folded away: which it is, and the seams that are drawn instead of it. Only where no lane ran, had
// an event or lost trace may it be folded, so that nothing that happened is hidden.
import { duration, short } from "../base/format.ts";
import { flat, joined, longest, type Fold } from "../base/folds.ts";
import { toPixel, unitsPerPixel, type View } from "../base/scale.ts";
import { EVENT, isOff, parent, MAX_LEVEL, TILE_BUCKETS, tileWidth, type Columns, type Stripe } from "../data/tile.ts";
import { streamExtent, timeIsNs } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import type { Colours } from "./colours.ts";
import { measured, SANS, setFont } from "./labels.ts";
import { RULER_HEIGHT } from "./ruler.ts";
import { needed, stripesOf } from "./scene.ts";

/** Empty time is folded from this width on. */
const LEAST_PX = 40;
/** So much of it stays on each side of the seam. */
const STAYS_PX = 7;
/** A link has room for so many. */
export const MOST_FOLDS = 50;
/** A seam is met within this distance. */
const NEAR_PX = 5;

/** That trace is on again is told at the beginning of what follows, too. */
function empty(c: Columns, b: number): boolean {
  return c.insns[b] === 0 && c.coverage[b] === 0 && c.eventCount[b] === 0 && (c.events[b]! & ~EVENT.traceOn) === 0
    && (c.lost[b] === 0 || isOff(c.flags[b]!));
}

/** Clear what a lane's bucket says is not empty. `quiet` has one element per bucket of the tile from `from` on. */
function mark(quiet: Uint8Array, from: number, bucket: number, stripe: Stripe, c: Columns): void {
  for (let b = 0; b < quiet.length; b++) {
    const at = from + b * bucket;
    const there = Math.floor((at - stripe.first) / stripe.bucket);
    if (!empty(c, there) || at + bucket > c.behindFrom) quiet[b] = 0;
  }
}

/** Up to where all lanes are known: one of a growing trace may be behind the others. */
function knownTo(s: Session, lanes: readonly number[]): number {
  return s.trace.state === "sealed" ? s.extent.last : Math.min(...lanes.map((lane) => streamExtent(s.trace.streams[lane]!, "time").last));
}

/** Stretches in view in which no lane has anything, as far as tiles are loaded. */
function quietIn(s: Session, view: View, width: number): Fold[] {
  const lanes = s.trace.streams.flatMap((stream, lane) => (stream.hasTime ? [lane] : []));
  const base = s.trace.tileBase.time;
  const out: Fold[] = [];
  const ends = knownTo(s, lanes);
  for (const id of needed(view, width, s.extent, base, [0]).tiles) {
    const wide = tileWidth(base, id.level);
    const bucket = wide / TILE_BUCKETS;
    const from = id.index * wide;
    const quiet = new Uint8Array(TILE_BUCKETS).fill(1);
    for (const lane of lanes) {
      const at = { ...id, stripe: stripesOf(lane, lane)[0]! };
      let stripe = s.tiles.peek(at);
      for (let up = 1; !stripe && id.level + up <= MAX_LEVEL; up++) stripe = s.tiles.peek(parent(at, up));
      const columns = stripe?.lanes.get(lane);
      if (stripe && columns) mark(quiet, from, bucket, stripe, columns);
      else if (!stripe) quiet.fill(0);
    }
    for (let b = 0; b < TILE_BUCKETS; b++) {
      if (quiet[b] === 0) continue;
      const first = b;
      while (b < TILE_BUCKETS && quiet[b] === 1) b++;
      out.push({ from: Math.max(s.extent.first, from + first * bucket), to: Math.min(ends, from + b * bucket) });
    }
  }
  return out.filter((f) => f.to > f.from).sort((a, b) => a.from - b.from);
}

/** All folds after folding the empty time in view; the same as before if there is none that is wide enough. */
export function foldsOf(s: Session, width: number): readonly Fold[] {
  const { view } = s;
  const before = view.folds ?? [];
  const unit = unitsPerPixel(view, width);
  const kept = new Set<Fold>();
  const out: Fold[] = [];
  // Empty time beside a fold and the fold are one.
  for (const all of joined(before, quietIn(s, view, width), unit)) {
    const inside = before.filter((f) => f.from < all.to && f.to > all.from);
    const seen = flat(before, all.to) - flat(before, all.from);
    if (seen >= LEAST_PX * unit) out.push({ from: all.from + STAYS_PX * unit, to: all.to - STAYS_PX * unit });
    else for (const f of inside) kept.add(f);
  }
  return longest([...kept, ...out].sort((a, b) => a.from - b.from), MOST_FOLDS);
}

export interface Seam {
  readonly fold: Fold;
  readonly x: number;
}

/** The seams in view. */
export function seams(view: View, width: number): Seam[] {
  return (view.folds ?? []).map((fold) => ({ fold, x: Math.round(toPixel(view, width, fold.from)) }))
    .filter(({ fold, x }) => fold.to > view.from && fold.from < view.to && x >= 0 && x <= width);
}

export function seamAt(view: View, width: number, x: number): Seam | undefined {
  return seams(view, width).find((seam) => Math.abs(seam.x - x) <= NEAR_PX);
}

function lengthOf(s: Session, { from, to }: Fold): string {
  return timeIsNs(s.trace) ? duration(to - from) : `${short(to - from)} ticks`;
}

/** "3 stretches, 1.2 s, folded away" for the status line, "" if there are none in view. */
export function foldedText(s: Session, width: number): string {
  const all = seams(s.view, width);
  const length = all.reduce((n, { fold }) => n + fold.to - fold.from, 0);
  return all.length === 0 ? "" : `${lengthOf(s, { from: 0, to: length })} folded away`;
}

/** What is said of a seam under the pointer. */
export function seamText(s: Session, seam: Seam): string {
  return `${lengthOf(s, seam.fold)} in which nothing ran`;
}

/** Widths of the labels at the left and right edge of each window, for the ruler. */
export function seamEdges(ctx: CanvasRenderingContext2D, s: Session, width: number): Map<number, number> {
  setFont(ctx, `600 11px ${SANS}`);
  const all = seams(s.view, width);
  const out = new Map<number, number>();
  all.forEach(({ fold, x }, i) => {
    const half = Math.ceil(measured(ctx, lengthOf(s, fold)) / 2) + 6;
    const room = Math.min(x - (all[i - 1]?.x ?? -x), (all[i + 1]?.x ?? 2 * width - x) - x);
    out.set(x, 2 * half <= room ? half : 0);
  });
  return out;
}

/** Torn edges over all lanes, with the length of what is left out in the ruler where it has room. */
export function drawSeams(ctx: CanvasRenderingContext2D, s: Session, width: number, height: number, edges: ReadonlyMap<number, number>, colours: Colours): void {
  const { named } = colours;
  ctx.textBaseline = "middle";
  setFont(ctx, `600 11px ${SANS}`);
  for (const { fold, x } of seams(s.view, width)) {
    const half = edges.get(x) ?? 0;
    ctx.beginPath();
    for (let y = half > 0 ? RULER_HEIGHT : 0, side = -1; y <= height + 4; y += 4, side = -side) ctx.lineTo(x + 2 * side, y);
    ctx.lineJoin = "round";
    for (const [wide, colour] of [[7, named.ground], [1.5, named.muted]] as const) {
      ctx.lineWidth = wide;
      ctx.strokeStyle = colour.css;
      ctx.stroke();
    }
    if (half === 0) continue;
    ctx.fillStyle = named.ground.css;
    ctx.fillRect(x - half, 0, 2 * half, RULER_HEIGHT - 1);
    ctx.fillStyle = named.muted.css;
    ctx.fillText(lengthOf(s, fold), x - half + 6, RULER_HEIGHT / 2);
  }
}

