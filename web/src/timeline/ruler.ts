// SPDX-License-Identifier: MIT
// The ruler above the lanes.
import { timeIsNs } from "../data/model.ts";
import { ruler, toPixel, type View } from "../base/scale.ts";
import type { Session } from "../view/session.ts";
import type { Colours } from "./colours.ts";
import { measured, SANS, setFont } from "./labels.ts";

export const RULER_HEIGHT = 24;
const SPACING = 110;

/**
 * In units of the axis, for a view without folds; times count from the session's zero. `edges`: width at its left and
 * right that labels leave free.
 */
export function drawRuler(
  ctx: CanvasRenderingContext2D, s: Session, view: View, width: number, height: number, colours: Colours, edges: readonly [number, number] = [0, 0],
): void {
  const { named } = colours;
  const { trace, zero } = s;
  const { base, ticks } = ruler(view, width, SPACING, timeIsNs(trace), view.axis === "time" ? trace.epoch - zero : 0n);
  ctx.textBaseline = "middle";
  setFont(ctx, `600 11px ${SANS}`);
  ctx.fillStyle = named.muted.css;
  const [left, right] = [edges[0], width - edges[1]];
  const taken = left + (base === "" ? 0 : 5 + measured(ctx, base) + 7);
  if (base !== "" && taken <= right) ctx.fillText(base, left + 5, RULER_HEIGHT / 2);
  setFont(ctx, `400 11px ${SANS}`);
  for (const tick of ticks) {
    const x = Math.round(toPixel(view, width, tick.at));
    if (x < -120 || x > width) continue;
    const major = tick.label !== "";
    ctx.fillStyle = named.line.css;
    if (x > taken || !major) ctx.fillRect(x, major ? 0 : RULER_HEIGHT - 5, 1, major ? RULER_HEIGHT : 5);
    if (major) {
      ctx.globalAlpha = 0.5;
      ctx.fillRect(x, RULER_HEIGHT, 1, height - RULER_HEIGHT);
      ctx.globalAlpha = 1;
      ctx.fillStyle = named.muted.css;
      // A label cut off at an edge reads as another number.
      if (x + 5 >= taken && x + 5 + measured(ctx, tick.label) <= right) ctx.fillText(tick.label, x + 5, RULER_HEIGHT / 2);
    }
  }
  ctx.fillStyle = named.line.css;
  ctx.fillRect(0, RULER_HEIGHT - 1, width, 1);
}
