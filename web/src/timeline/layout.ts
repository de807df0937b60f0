// SPDX-License-Identifier: MIT
// Where a lane's bands lie. From top to bottom: marks (events and gaps), the function band, the
// privilege strip, branch density, and in an open lane the call stack.

export interface Band {
  readonly y: number; // from the lane's top
  readonly h: number; // 0: not drawn
}

export interface LaneBox {
  readonly lane: number; // index of the stream
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

export const STACK_ROW = 15;
const STATE_ROW = 13;
const CURVE_ROW = 34;
/** Rows of an open call stack, until somebody asks for all of them. */
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
  readonly open: boolean;
  readonly full: boolean; // open with every row
  readonly depth: number; // deepest call stack known, 0: none known
  readonly states?: boolean; // processes and modes are shown
  readonly counters?: number; // so many curves are
}

export function layoutLanes(shapes: readonly LaneShape[]): { boxes: LaneBox[]; height: number } {
  const sizes = sizesFor(shapes.length);
  let top = 0;
  const boxes = shapes.map((shape, lane) => {
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
    const rows = !shape.open ? 0 : shape.full ? shape.depth : Math.min(shape.depth, FEW_ROWS);
    const stack = band(rows * STACK_ROW);
    const box = { lane, y: top, h: y + Math.floor(sizes.pad / 2), marks, fn, privilege, density, states, counters, stack };
    top += box.h;
    return box;
  });
  return { boxes, height: top };
}

/** The lane at a height, or undefined below the last. */
export function laneAt(boxes: readonly LaneBox[], y: number): LaneBox | undefined {
  return boxes.find((b) => y >= b.y && y < b.y + b.h);
}
