// SPDX-License-Identifier: MIT
// The whole trace in a strip: every lane a few pixels high, the view as a window, search hits as
// ticks.
import type { Session } from "../view/session.ts";
import type { HitColumns } from "../data/lanedata.ts";
import { isSoftware, streamExtent, type Hit, type Slice } from "../data/model.ts";
import { toPixel, type View } from "../base/scale.ts";
import { FLAG_LOST, isOff, runs, TILE_BUCKETS, type Columns, type Stripe } from "../data/tile.ts";
import type { Colours } from "./colours.ts";
import { innermost } from "./labels.ts";
import { fill, lossOf, type Target } from "./paint.ts";

export const MINIMAP_HEIGHT = 44;
const MARKS = 5; // at the bottom, for hits

/** The view of the minimap itself. */
export function overview(session: Session): View {
  const { first, last } = session.extent;
  return { axis: session.view.axis, from: first, to: Math.max(last, first + 1) };
}

export interface Strip {
  readonly lane: number;
  readonly stripe: Stripe;
  readonly columns: Columns;
  readonly slices: readonly Slice[] | undefined; // for code without symbols: gives its colours
}

/** Every lane's dominant function per column, lost trace across the lane's strip. */
export function paintOverview(
  target: Target, session: Session, strips: readonly Strip[], colours: Colours, dpr: number,
): void {
  const view = overview(session);
  const lanes = Math.max(1, session.trace.streams.length);
  const room = target.height - (MARKS + 3) * dpr;
  const least = 2 * Math.max(1, Math.round(dpr));
  const scale = target.width / (view.to - view.from);
  const targets = new Map<readonly Slice[], Uint32Array>();
  const places = new Map(session.order.map((lane, i) => [lane, i]));
  for (const { lane, stripe, columns, slices } of strips) {
    const place = places.get(lane) ?? lane;
    if (slices && !targets.has(slices)) targets.set(slices, innermost(slices, view, target.width, colours));
    const called = slices && targets.get(slices);
    const y0 = Math.round(2 * dpr + (place * room) / lanes);
    const gap = room / lanes > 4 * dpr ? Math.round(dpr) : 0;
    const y1 = Math.max(y0 + 1, Math.round(2 * dpr + ((place + 1) * room) / lanes) - gap);
    const end = streamExtent(session.trace.streams[lane]!, view.axis).last;
    const software = isSoftware(session.trace.streams[lane]!.protocol);
    for (let b = 0; b < TILE_BUCKETS; b++) {
      const at = stripe.first + b * stripe.bucket;
      if (at >= end) break;
      // Whatever exists is seen, also at both ends, where the frame of the view's window is.
      const x0 = Math.min(target.width - least, Math.max(0, Math.round((at - view.from) * scale)));
      const x1 = Math.min(target.width,
        Math.max(x0 + least, Math.round((Math.min(at + stripe.bucket, end) - view.from) * scale)));
      if (x1 <= 0) continue;
      const lost = columns.lost[b]! > 0 || ((columns.flags[b]! & FLAG_LOST) !== 0 && !isOff(columns.flags[b]!));
      const missing = colours.named[lossOf(columns.flags[b]!)].rgba;
      if (software ? columns.insns[b]! > 0 : runs(columns, b)) {
        const share = view.axis === "insn" ? 1 : Math.max(0.25, columns.coverage[b]! / 255);
        fill(target, x0, x1, y1 - Math.max(1, Math.round((y1 - y0) * share)), y1,
          software ? colours.faint(colours.named.software).rgba : called?.[x0] || colours.code(columns.fn[b]!, columns.page[b]!).rgba);
        if (lost) fill(target, x0, x0 + 1, y0, y0 + Math.max(1, (y1 - y0) >> 2), missing);
      } else if (lost) {
        fill(target, x0, x1, y0, y1, missing);
      } else if (at >= columns.behindFrom) { // dots: still being indexed
        const [dot, middle] = [Math.round(dpr), (y0 + y1) >> 1];
        for (let x = Math.ceil(x0 / (4 * dot)) * 4 * dot; x < x1; x += 4 * dot) fill(target, x, x + dot, middle, middle + dot, colours.named.muted.rgba);
      }
    }
  }
}

/** The window of the view, the cursor, the hits. In CSS pixels. */
export function drawOverview(
  ctx: CanvasRenderingContext2D, session: Session, width: number, colours: Colours,
): void {
  const view = overview(session);
  const { named } = colours;
  const x0 = Math.max(0, toPixel(view, width, session.view.from));
  const x1 = Math.min(width, toPixel(view, width, session.view.to));
  const h = MINIMAP_HEIGHT;
  ctx.fillStyle = named.ground.css;
  ctx.globalAlpha = 0.62;
  ctx.fillRect(0, 0, x0, h);
  ctx.fillRect(x1, 0, width - x1, h);
  ctx.globalAlpha = 1;
  const left = Math.min(x0, width - 3);
  const wide = Math.max(3, x1 - left);
  ctx.strokeStyle = named.accent.css;
  ctx.lineWidth = 1;
  ctx.strokeRect(Math.round(left) + 0.5, 0.5, Math.round(wide) - 1, h - 1);
  if (session.selection) {
    const s0 = toPixel(view, width, session.selection[0]);
    const s1 = toPixel(view, width, session.selection[1]);
    ctx.fillStyle = named.accent.css;
    ctx.globalAlpha = 0.25;
    ctx.fillRect(s0, 0, Math.max(1, s1 - s0), h);
    ctx.globalAlpha = 1;
  }
  if (session.found) {
    const { hits, mapColumns } = session.found.list;
    drawHits(ctx, hits, view, width, h - MARKS, MARKS, named.hit.css);
    for (const { name } of session.trace.streams) {
      drawHitColumns(ctx, mapColumns.get(name, view), view, width, h - MARKS, MARKS, named.hit.css);
    }
  }
  if (session.cursor !== undefined) {
    ctx.fillStyle = named.accent.css;
    ctx.fillRect(Math.round(toPixel(view, width, session.cursor)), 0, 1, h);
  }
}

export function drawHits(
  ctx: CanvasRenderingContext2D, hits: readonly Hit[], view: View, width: number, y: number, h: number,
  css: string,
): void {
  ctx.fillStyle = css;
  let last = -10;
  for (const hit of hits) {
    const at = view.axis === "insn" ? hit.insn : hit.time;
    if (at === undefined) continue;
    const x = Math.round(toPixel(view, width, at));
    if (x < 0 || x > width || x === last) continue;
    ctx.fillRect(x, y, 2, h);
    last = x;
  }
}

/** A tick at each column that has hits, as wide as it is. */
export function drawHitColumns(
  ctx: CanvasRenderingContext2D, columns: HitColumns | undefined, view: View, width: number, y: number, h: number, css: string,
): void {
  if (!columns) return;
  const { from, to, hits } = columns;
  const wide = (to - from) / hits.length;
  ctx.fillStyle = css;
  for (let i = Math.max(0, Math.floor((view.from - from) / wide) - 1); i < hits.length; i++) {
    if (hits[i] === 0) continue;
    const x0 = Math.round(toPixel(view, width, from + i * wide));
    if (x0 > width) break;
    const x1 = Math.round(toPixel(view, width, from + (i + 1) * wide));
    if (x1 >= 0) ctx.fillRect(x0, y, Math.max(2, Math.min(x1, width) - x0), h);
  }
}
