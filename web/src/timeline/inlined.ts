// SPDX-License-Identifier: MIT
// Inlined functions below the call stack, shown where instructions are wide enough to be
// distinguished. They were not called, so their boxes are not filled.
import type { InsnCache } from "../data/insns.ts";
import type { Slice } from "../data/model.ts";
import type { View } from "../base/scale.ts";
import type { Colours } from "./colours.ts";
import { fittedName, SANS, setFont } from "./labels.ts";
import { STACK_ROW, type LaneBox } from "./layout.ts";

export interface InlinedRun {
  readonly from: number; // instructions
  to: number;
  readonly depth: number; // row of the stack
  readonly fn: string;
}

/** Runs of instructions of one inlined function, in the rows below the slices that contain them. */
export function inlinedRuns(
  cache: InsnCache, slices: readonly Slice[], from: number, to: number,
): InlinedRun[] {
  const out: InlinedRun[] = [];
  let before: InlinedRun[] = []; // of the previous instruction, by level
  for (let i = from; i < to; i++) {
    const row = cache.get(i);
    const now: InlinedRun[] = [];
    if (row && row.inlined.length > 0) {
      const depth = slices.reduce((d, s) => (s.from <= i && s.to > i ? Math.max(d, s.depth) : d), -1);
      let same = true;
      row.inlined.forEach((inlined, k) => {
        const last = before[k];
        same &&= last !== undefined && last.fn === inlined.fn && last.depth === depth + 1 + k;
        const run = same ? last! : { from: i, to: i, depth: depth + 1 + k, fn: inlined.fn };
        run.to = i + 1;
        if (!same) out.push(run);
        now.push(run);
      });
    }
    before = now;
  }
  return out;
}

/** Draw them; returns the number of stack rows they need. */
export function drawInlined(
  ctx: CanvasRenderingContext2D, all: readonly InlinedRun[], view: View, top: number, box: LaneBox,
  colours: Colours, width: number,
): number {
  const scale = width / (view.to - view.from);
  const rows = Math.floor(box.stack.h / STACK_ROW);
  let deepest = 0;
  setFont(ctx, `italic 400 10.5px ${SANS}`);
  ctx.textBaseline = "middle";
  ctx.lineWidth = 1;
  for (const run of all) {
    deepest = Math.max(deepest, run.depth + 1);
    if (run.depth >= rows) continue;
    const x0 = Math.max(-2, (run.from - view.from) * scale);
    const x1 = Math.min(width + 2, (run.to - view.from) * scale);
    const y = top + box.stack.y + run.depth * STACK_ROW;
    ctx.strokeStyle = colours.named_(run.fn).css;
    ctx.setLineDash([3, 2]);
    ctx.strokeRect(x0 + 0.5, y + 0.5, Math.max(1, x1 - x0 - 2), STACK_ROW - 3);
    const text = fittedName(ctx, run.fn, x1 - Math.max(0, x0) - 9);
    if (text === "") continue;
    ctx.fillStyle = colours.named.ink.css;
    ctx.fillText(text, Math.max(0, x0) + 4, y + (STACK_ROW - 1) / 2 + 0.5);
  }
  ctx.setLineDash([]);
  return deepest;
}
