// SPDX-License-Identifier: MIT
// What lies at a position of the plot: lane, call, inlined function, edge to snap to, column of a tile.
import type { App } from "../view/app.ts";
import type { Node } from "../view/arrange.ts";
import { streamExtent, type Slice } from "../data/model.ts";
import { toUnit, unitsPerPixel } from "../base/scale.ts";
import type { Session } from "../view/session.ts";
import type { Columns, Stripe } from "../data/tile.ts";
import type { InlinedRun } from "./inlined.ts";
import { laneAt, NO_LANE, STACK_ROW, type LaneBox } from "./layout.ts";
import { RULER_HEIGHT } from "./ruler.ts";
import { sliceIn } from "./stacks.ts";

/** Measurements snap to edges within this distance, in pixels. */
const SNAP = 7;

/** What is under the pointer. */
export interface Hover {
  readonly lane: number; // for a group: one of its lanes
  readonly group?: Node; // folded group under the pointer
  readonly at: number; // units
  readonly columns: Columns | undefined;
  readonly bucket: number; // index in the columns
  readonly from: number; // units of the bucket
  readonly width: number;
  readonly x: number;
  readonly y: number;
}

export type Each = (stripe: Stripe, columns: Columns, from: number, to: number, exact: boolean) => void;

/** What is drawn where. */
export interface Drawn {
  readonly plotWidth: number;
  readonly inSight: readonly LaneBox[]; // those drawn last are over the others
  readonly inlined: ReadonlyMap<number, readonly InlinedRun[]>; // by lane
  boxOf(lane: number): LaneBox | undefined;
  visit(s: Session, lane: number, each: Each): void;
  visitGroup(s: Session, group: Node, each: Each): void;
}

export class Under {
  constructor(private readonly app: App, private readonly drawn: Drawn) {}

  laneAtY(y: number): number | undefined {
    const lane = y < RULER_HEIGHT ? undefined : this.boxAtY(y)?.lane;
    return lane === NO_LANE ? undefined : lane;
  }

  /** Pinned lanes are over the others. */
  boxAtY(y: number): LaneBox | undefined {
    return laneAt([...this.drawn.inSight].reverse(), y - RULER_HEIGHT);
  }

  unitAt(x: number): number {
    const s = this.app.session;
    return s ? toUnit(s.view, this.drawn.plotWidth, x) : 0;
  }

  /** The unit at a position, or a nearby edge of a call, of the lane or the cursor. */
  snap(x: number, y: number): number {
    const s = this.app.session;
    const at = this.unitAt(x);
    const lane = this.laneAtY(y) ?? s?.lane;
    const stream = lane === undefined ? undefined : s?.trace.streams[lane];
    if (!s || !stream) return at;
    const unit = unitsPerPixel(s.view, this.drawn.plotWidth);
    let best = at;
    let far = SNAP * unit;
    const consider = (edge: number): void => {
      if (Math.abs(edge - at) >= far) return;
      far = Math.abs(edge - at);
      best = edge;
    };
    for (const slice of s.slices.get(stream.name, s.view)?.slices ?? []) {
      if (slice.to - slice.from < 2 * unit) continue;
      consider(slice.from);
      consider(slice.to);
    }
    const extent = streamExtent(stream, s.view.axis);
    for (const edge of [s.cursor, extent.first, extent.last]) if (edge !== undefined) consider(edge);
    return best;
  }

  /** The row of the call stack at a position of the plot. */
  private rowAt(x: number, y: number): { lane: number; depth: number; at: number } | undefined {
    const s = this.app.session;
    const lane = this.laneAtY(y);
    const box = lane === undefined ? undefined : this.drawn.boxOf(lane);
    if (!s || !box || lane === undefined) return undefined;
    const depth = Math.floor((y - RULER_HEIGHT - box.y - box.stack.y) / STACK_ROW);
    if (depth < 0 || depth * STACK_ROW >= box.stack.h) return undefined;
    return { lane, depth, at: toUnit(s.view, this.drawn.plotWidth, x) };
  }

  /** The run of an inlined function at a position of the plot. */
  inlinedAt(x: number, y: number): InlinedRun | undefined {
    const row = this.rowAt(x, y);
    return row && this.drawn.inlined.get(row.lane)?.find((r) => r.depth === row.depth && r.from <= row.at && r.to > row.at);
  }

  /** The slice of the call stack at a position of the plot. `whole`: it ends within what is loaded. */
  sliceAt(x: number, y: number): { lane: number; slice: Slice; whole: boolean } | undefined {
    const s = this.app.session;
    const row = this.rowAt(x, y);
    if (!s || !row) return undefined;
    const { lane, depth, at } = row;
    const slack = unitsPerPixel(s.view, this.drawn.plotWidth);
    const known = s.slices.get(s.trace.streams[lane]!.name, s.view);
    const slice = known && sliceIn(known.slices, depth, at, slack);
    return slice && { lane, slice, whole: slice.to < known.to };
  }

  look(s: Session, x: number, y: number): Hover | undefined {
    const at = toUnit(s.view, this.drawn.plotWidth, x);
    const group = y < RULER_HEIGHT ? undefined : this.boxAtY(y)?.node;
    if (group?.folded) return this.inspectGroup(s, group, at, x, y);
    return this.inspect(s, this.laneAtY(y) ?? s.lane, at, x, y);
  }

  /** The most detailed information about a position. */
  inspect(s: Session, lane: number, at: number, x = 0, y = 0): Hover {
    return this.finest({ lane, at, columns: undefined, bucket: 0, from: at, width: 1, x, y }, (each) => this.drawn.visit(s, lane, each));
  }

  private inspectGroup(s: Session, group: Node, at: number, x: number, y: number): Hover {
    return this.finest({ lane: group.lanes[0]!, group, at, columns: undefined, bucket: 0, from: at, width: 1, x, y }, (each) => this.drawn.visitGroup(s, group, each));
  }

  private finest(none: Hover, visit: (each: Each) => void): Hover {
    const { at } = none;
    let best = none;
    visit((stripe, columns, from, to) => {
      if (at < from || at >= to) return;
      const bucket = Math.floor((at - stripe.first) / stripe.bucket);
      best = { ...none, columns, bucket, from: stripe.first + bucket * stripe.bucket, width: stripe.bucket };
    });
    return best;
  }
}
