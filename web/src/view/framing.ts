// SPDX-License-Identifier: MIT
// What is fitted into the view: the selection, the call at the cursor, what called that, and at last the whole lane, one
// after the other.
import { call } from "../data/calls.ts";
import { streamExtent } from "../data/model.ts";
import { clamp, span, type View } from "../base/scale.ts";
import type { Session } from "./session.ts";

/** Space on each side, as a fraction of what is framed. */
const AIR = 0.05;
const LIMIT_MS = 10000;
/** Views that differ by less than this fraction look the same. */
const SAME = 0.02;

export type Range = readonly [number, number]; // in units of the axis

/** A view that shows a range with some space around it. */
export function fitting(s: Session, [from, to]: Range): View {
  const air = (to - from) * AIR;
  return clamp({ axis: s.view.axis, from: from - air, to: to + air }, s.extent);
}

function alike(a: View, b: View): boolean {
  return a.axis === b.axis && Math.abs(a.from - b.from) + Math.abs(a.to - b.to) < SAME * span(a);
}

export interface Framed {
  readonly what: string;
  readonly view: View;
  readonly depth?: number; // of a call
}

/** The view of a call that is active at an instruction; `depth` undefined: the innermost. */
export async function callView(s: Session, insn: number, depth: number | undefined): Promise<Required<Framed> | undefined> {
  const c = s.stream && await call(s.trace, s.stream.name, insn, depth, AbortSignal.timeout(LIMIT_MS)).catch(() => undefined);
  const [from, to] = s.view.axis === "insn" ? [c?.from, c?.to] : [c?.timeFrom, c?.timeTo];
  if (!c || from === undefined || to === undefined) return undefined;
  return { what: c.name === "" ? "The call" : `The call of ${c.name}`, view: fitting(s, [from, Math.max(from + 1, to)]), depth: c.depth };
}

export class Framing {
  private last: Framed | undefined;

  /** What to frame now: the next wider thing if the view is what was framed last. Undefined: there is nothing wider. */
  async next(s: Session): Promise<Framed | undefined> {
    const { last } = this;
    const goOn = last !== undefined && alike(last.view, s.view);
    const wider = (view: View): boolean => !goOn || !(alike(view, last.view) || span(view) < span(last.view));
    this.last = await this.find(s, wider, goOn ? last.depth : undefined);
    return this.last;
  }

  private async find(s: Session, wider: (view: View) => boolean, framed: number | undefined): Promise<Framed | undefined> {
    const chosen = s.selection && fitting(s, s.selection);
    if (chosen && wider(chosen)) return { what: "The selection", view: chosen };
    let depth = framed === undefined ? s.depth : framed - 1;
    while (s.cursorInsn !== undefined && (depth === undefined || depth >= 0)) {
      const c = await callView(s, s.cursorInsn, depth);
      if (!c) break;
      if (wider(c.view)) return c;
      depth = c.depth - 1;
    }
    const { first, last } = s.stream ? streamExtent(s.stream, s.view.axis) : s.extent;
    const lane = fitting(s, [first, Math.max(first + 1, last)]);
    return s.stream && wider(lane) ? { what: `Lane ${s.stream.name}`, view: lane } : undefined;
  }
}
