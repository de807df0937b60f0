// SPDX-License-Identifier: MIT
// The overlay over the lanes that changes with the pointer: hairline, cursor, selection, hits.
import type { Session } from "../view/session.ts";
import { drawFlags } from "./flags.ts";
import { duration, grouped, short } from "../base/format.ts";
import { timeIsNs } from "../data/model.ts";
import { toPixel } from "../base/scale.ts";
import type { Colours } from "./colours.ts";
import { measured, SANS, setFont } from "./labels.ts";
import type { LaneBox } from "./layout.ts";
import { drawHitColumns, drawHits } from "./minimap.ts";
import { RULER_HEIGHT } from "./ruler.ts";

export interface OverlayState {
  readonly hoverX: number | undefined;
  readonly scroll: number;
  readonly boxes: readonly LaneBox[];
}

export function drawOverlay(
  ctx: CanvasRenderingContext2D, session: Session, state: OverlayState, width: number,
  height: number, colours: Colours,
): void {
  const { named } = colours;
  const { view } = session;
  if (session.selection) drawSelection(ctx, session, width, height, colours);
  if (session.found) {
    for (const box of state.boxes) {
      const name = session.trace.streams[box.lane]!.name;
      const { list } = session.found;
      const y = RULER_HEIGHT + box.y - state.scroll + box.marks.y - 3;
      drawHits(ctx, list.hits.filter((h) => h.stream === name), view, width, y, 3 + box.marks.h, named.hit.css);
      drawHitColumns(ctx, list.columns.get(name, view), view, width, y, 3 + box.marks.h, named.hit.css);
    }
  }
  drawFlags(ctx, session, state.boxes, state.scroll, RULER_HEIGHT, width, colours);
  if (state.hoverX !== undefined) {
    ctx.fillStyle = named.muted.css;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(Math.round(state.hoverX), RULER_HEIGHT, 1, height);
    ctx.globalAlpha = 1;
  }
  if (session.cursor !== undefined) {
    const x0 = toPixel(view, width, session.cursor);
    const x1 = toPixel(view, width, session.cursor + 1);
    if (x1 >= 0 && x0 <= width) {
      ctx.fillStyle = named.accent.css;
      if (x1 - x0 > 6) {
        // A single instruction is wide enough to be framed.
        const box = state.boxes.find((b) => b.lane === session.lane);
        if (box) {
          const y = RULER_HEIGHT + box.y - state.scroll;
          ctx.strokeStyle = named.ink.css;
          ctx.lineWidth = 1.5;
          ctx.strokeRect(x0 + 0.75, y + box.fn.y - 0.75, x1 - x0 - 0.5, box.fn.h + 1.5);
        }
      }
      const x = Math.round(x0);
      ctx.fillRect(x, RULER_HEIGHT - 8, 1, height);
      ctx.beginPath();
      ctx.moveTo(x - 4, RULER_HEIGHT - 8);
      ctx.lineTo(x + 5, RULER_HEIGHT - 8);
      ctx.lineTo(x + 0.5, RULER_HEIGHT - 1);
      ctx.fill();
    }
  }
}

function drawSelection(
  ctx: CanvasRenderingContext2D, session: Session, width: number, height: number,
  colours: Colours,
): void {
  const { named } = colours;
  const [from, to] = session.selection!;
  const x0 = toPixel(session.view, width, from);
  const x1 = toPixel(session.view, width, to);
  if (x1 < 0 || x0 > width) return;
  ctx.fillStyle = named.accent.css;
  ctx.globalAlpha = 0.13;
  ctx.fillRect(x0, 0, x1 - x0, height);
  ctx.globalAlpha = 1;
  ctx.fillRect(Math.round(x0), 0, 1, height);
  ctx.fillRect(Math.round(x1) - 1, 0, 1, height);
  const size = to - from;
  const text = session.view.axis === "insn" ? `${size < 1e5 ? grouped(size) : short(size)} insns`
    : timeIsNs(session.trace) ? duration(size) : `${short(size)} ticks`;
  setFont(ctx, `600 11px ${SANS}`);
  ctx.textBaseline = "middle";
  const wide = measured(ctx, text) + 12;
  const middle = (Math.max(0, x0) + Math.min(width, x1)) / 2;
  const x = Math.min(Math.max(middle - wide / 2, 0), width - wide);
  ctx.fillStyle = named.accent.css;
  ctx.beginPath();
  ctx.roundRect(x, 3, wide, RULER_HEIGHT - 6, 4);
  ctx.fill();
  ctx.fillStyle = named.ground.css;
  ctx.fillText(text, x + 6, RULER_HEIGHT / 2 + 0.5);
}
