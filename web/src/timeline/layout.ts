// SPDX-License-Identifier: MIT
// The layout of a lane's bands. From top to bottom: marks (events and gaps), the function band, the
// privilege strip, branch density, and in an open lane the call stack. A group of lanes has a line
// of its own, with marks and function band when it is folded.
import type { Node } from "../view/arrange.ts";

export interface Band {
  readonly y: number; // from the lane's top
  readonly h: number; // 0: not drawn
}

export interface LaneBox {
  readonly lane: number; // index of the stream; NO_LANE: a group
  readonly node?: Node;
  readonly pinned: boolean;
  readonly y: number; // from the top of all lanes
  readonly h: number;
  readonly marks: Band;
  readonly fn: Band;
  readonly privilege: Band;
  readonly density: Band;
  readonly states: Band; // processes, and modes below them
  readonly counters: Band;
  readonly stack: Band;
}

export const NO_LANE = -1;
export const STACK_ROW = 15;
const GROUP_ROW = 21;
const STATE_ROW = 13;
const CURVE_ROW = 34;
/** Rows of an open call stack, unless all are requested. */
export const FEW_ROWS = 12;

interface Sizes {
  readonly marks: number;
  readonly fn: number;
  readonly privilege: number;
  readonly density: number;
  readonly pad: number;
}

function sizesFor(lanes: number): Sizes {
  if (lanes <= 6) return { marks: 8, fn: 30, privilege: 4, density: 14, pad: 12 };
  if (lanes <= 16) return { marks: 6, fn: 20, privilege: 3, density: 8, pad: 8 };
  return { marks: 4, fn: 12, privilege: 3, density: 0, pad: 5 };
}

export interface LaneShape {
  readonly lane: number; // index of the stream; NO_LANE: a group
  readonly node?: Node;
  readonly open: boolean;
  readonly full: boolean; // open with all rows
  readonly depth: number; // deepest call stack known, 0: none known
  readonly pinned?: boolean;
  readonly states?: boolean; // processes and modes are shown
  readonly counters?: number; // number of curves
  readonly software?: boolean; // messages need no height
}

/** Up to this many lanes fill the window. */
const FILLING = 3;
/** Maximum height of the plot of branches. */
const HIGHEST = 72;

/** `room`: available height. */
export function layoutLanes(shapes: readonly LaneShape[], room = 0): { boxes: LaneBox[]; height: number } {
  const lanes = shapes.filter((shape) => shape.lane !== NO_LANE).length;
  const sizes = sizesFor(lanes);
  const few = (shape: LaneShape): number => (!shape.open ? 0 : shape.full ? shape.depth : Math.min(shape.depth, FEW_ROWS));
  const usual = lay(shapes, () => sizes, few);
  let spare = room - usual.height;
  if (lanes === 0 || lanes > FILLING || spare <= 0) return usual;
  // More levels first, then higher bands.
  const rows = shapes.map(few);
  for (let more = true; more;) {
    more = false;
    shapes.forEach((shape, i) => {
      if (!shape.open || rows[i]! >= shape.depth || spare < STACK_ROW) return;
      rows[i] = rows[i]! + 1;
      spare -= STACK_ROW;
      more = true;
    });
  }
  const each = Math.floor(spare / Math.max(1, shapes.filter((shape) => !shape.software && shape.lane !== NO_LANE).length));
  const density = Math.min(HIGHEST, sizes.density + Math.round(each * 0.2));
  const enlarged = { ...sizes, density, fn: sizes.fn + each - (density - sizes.density) };
  return lay(shapes, (shape) => (shape.software ? sizes : enlarged), (shape) => rows[shapes.indexOf(shape)]!);
}

function lay(
  shapes: readonly LaneShape[], sizesOf: (shape: LaneShape) => Sizes, rowsOf: (shape: LaneShape) => number,
): { boxes: LaneBox[]; height: number } {
  let top = 0;
  const none = { y: 0, h: 0 };
  const boxes = shapes.map((shape): LaneBox => {
    const of = { lane: shape.lane, pinned: shape.pinned === true, y: top, ...(shape.node && { node: shape.node }) };
    if (shape.lane === NO_LANE) {
      top += GROUP_ROW;
      const folded = shape.node?.folded === true;
      const marks = folded ? { y: 2, h: 5 } : none;
      const fn = folded ? { y: 7, h: GROUP_ROW - 10 } : none;
      return { ...of, h: GROUP_ROW, marks, fn, privilege: none, density: none, states: none, counters: none, stack: none };
    }
    const sizes = sizesOf(shape);
    let y = Math.ceil(sizes.pad / 2);
    const band = (h: number, gap = 0): Band => {
      const at = y;
      y += h + (h > 0 ? gap : 0);
      return { y: at, h };
    };
    const marks = band(sizes.marks, 1);
    const fn = band(sizes.fn, 1);
    const privilege = band(sizes.privilege, 2);
    const density = band(sizes.density, 2);
    const states = band(shape.states ? 2 * STATE_ROW : 0, 2);
    const counters = band((shape.counters ?? 0) * CURVE_ROW, 2);
    const stack = band(rowsOf(shape) * STACK_ROW);
    const box = {
      ...of, h: y + Math.floor(sizes.pad / 2), marks, fn, privilege, density, states,
      counters, stack,
    };
    top += box.h;
    return box;
  });
  return { boxes, height: top };
}

/** Positions of the lanes on screen: pinned ones do not scroll. */
export function placed(boxes: readonly LaneBox[], scroll: number): LaneBox[] {
  return boxes.map((box) => (box.pinned || scroll === 0 ? box : { ...box, y: box.y - scroll }));
}

/** The lane at a height, or undefined below the last. */
export function laneAt(boxes: readonly LaneBox[], y: number): LaneBox | undefined {
  return boxes.find((b) => y >= b.y && y < b.y + b.h);
}
