// SPDX-License-Identifier: MIT
// The ruler above the lanes.
import { ticks, toPixel, type View } from "../scale.ts";
import type { Colours } from "./colours.ts";
import { measured, SANS, setFont } from "./labels.ts";

export const RULER_HEIGHT = 24;
const SPACING = 110;

export function drawRuler(
  ctx: CanvasRenderingContext2D, view: View, width: number, height: number, colours: Colours,
  ns: boolean, zero: number,
): void {
  const { named } = colours;
  setFont(ctx, `400 11px ${SANS}`);
  ctx.textBaseline = "middle";
  for (const tick of ticks(view, width, SPACING, ns, zero)) {
    const x = Math.round(toPixel(view, width, tick.at));
    if (x < -120 || x > width) continue;
    const major = tick.label !== "";
    ctx.fillStyle = named.line.css;
    ctx.fillRect(x, major ? 0 : RULER_HEIGHT - 5, 1, major ? RULER_HEIGHT : 5);
    if (major) {
      ctx.globalAlpha = 0.5;
      ctx.fillRect(x, RULER_HEIGHT, 1, height - RULER_HEIGHT);
      ctx.globalAlpha = 1;
      ctx.fillStyle = named.muted.css;
      // A label cut off at an edge reads as another number.
      if (x + 5 >= 0 && x + 5 + measured(ctx, tick.label) <= width) ctx.fillText(tick.label, x + 5, RULER_HEIGHT / 2);
    }
  }
  ctx.fillStyle = named.line.css;
  ctx.fillRect(0, RULER_HEIGHT - 1, width, 1);
}
