// SPDX-License-Identifier: MIT
// The kinds of sub-lanes, the data they need, and drawing them.
import { html, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { View } from "../base/scale.ts";
import { isSoftware, streamExtent } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { TILE_BUCKETS, type Columns, type Stripe } from "../data/tile.ts";
import type { Sub } from "../view/url.ts";
import type { Colours } from "./colours.ts";
import type { Cuts } from "./labels.ts";
import type { LaneBox } from "./layout.ts";
import { columnPoints, drawCurves, drawLog, drawStates, rateText, scaleOf, type Curve } from "./sublanes.ts";

type Visit = (each: (stripe: Stripe, columns: Columns, from: number, to: number) => void) => void;

/** Maximum entries that can be distinguished in a view. */
const ENTRIES = 400;

export class SubLanes {
  constructor(private readonly app: App) {}

  shape(s: Session, lane: number): { states: boolean; counters: number; software: boolean } {
    const stream = s.trace.streams[lane]!;
    const on = (sub: Sub): boolean => !isSoftware(stream.protocol) && this.app.tree.subs.has(sub) && !s.arrangement.folded.includes(`${stream.name}/${sub}`);
    return {
      software: isSoftware(stream.protocol),
      states: on("states"),
      counters: on("counters") ? this.curves(s, lane) : 0,
    };
  }

  /** Branches always, others if the stream has times and cycle counts. */
  private curves(s: Session, lane: number): number {
    const stream = s.trace.streams[lane]!;
    const known = s.counters.get(stream.name, s.view);
    return 1 + (stream.hasTime ? 1 : 0) + (known && known.cpi.length > 0 ? 1 : 0);
  }

  want(s: Session, lanes: readonly number[], edge: boolean): void {
    const seen = s.trace.streams.map((stream, lane) => ({ stream, lane }))
      .filter(({ stream, lane }) => lanes.includes(lane) && (s.view.axis === "insn" || stream.hasTime));
    const cores = seen.filter((x) => !isSoftware(x.stream.protocol)).map((x) => x.stream.name);
    const software = seen.filter((x) => isSoftware(x.stream.protocol)).map((x) => x.stream.name);
    const { revision } = s.trace;
    if (software.length > 0) s.log.want(software, s.view, revision, edge);
    if (this.app.tree.subs.has("states") && cores.length > 0) s.states.want(cores, s.view, revision, edge);
    if (this.app.tree.subs.has("counters") && cores.length > 0) s.counters.want(cores, s.view, revision, edge);
  }

  /**
   * Draws everything in a window of the view except the titles of the curves that it returns. Scales are those of the
   * whole view, so that heights are the same in all windows.
   */
  draw(
    ctx: CanvasRenderingContext2D, s: Session, box: LaneBox, top: number, colours: Colours, width: number, cuts: Cuts, view: View, visit: Visit,
  ): readonly Curve[] {
    const stream = s.trace.streams[box.lane]!;
    if (isSoftware(stream.protocol)) {
      const log = s.log.get(stream.name, s.view);
      if (log && box.fn.h >= 12 && log.entries.length <= 3 * ENTRIES) drawLog(ctx, log, view, top, box, colours, width, cuts);
      return [];
    }
    const states = box.states.h > 0 ? s.states.get(stream.name, s.view) : undefined;
    if (states) drawStates(ctx, states, view, top, box, colours, width, cuts);
    if (box.counters.h === 0) return [];
    const curves: Curve[] = [];
    const counters = s.counters.get(stream.name, s.view);
    const sampled = counters?.sampled === true;
    const points = (values: readonly number[], of = view): Curve["points"] => (counters ? columnPoints(counters, values, of, width) : []);
    if (stream.hasTime) {
      const rate = counters?.rate ?? [];
      curves.push({ title: "instructions", points: points(rate), most: scaleOf(points(rate, s.view)), unit: (v) => rateText(v, stream.timeIsNs), sampled: false });
    }
    if (counters && counters.cpi.length > 0) {
      curves.push({ title: "cycles per instruction", points: points(counters.cpi), most: scaleOf(points(counters.cpi, s.view)), unit: (v) => String(Number(v.toPrecision(3))), sampled });
    }
    curves.push({ title: "branches", points: branchPoints(s, box.lane, view, visit, width), most: 1, unit: () => "100 %", sampled: false });
    drawCurves(ctx, curves, box.counters, top, colours, width);
    return curves;
  }

  buttons(): TemplateResult {
    const button = (sub: Sub, key: string, word: string, text: string): TemplateResult => html`<button class="action"
      aria-pressed=${this.app.tree.subs.has(sub)} title=${`${text} (${key})`} aria-label=${text}
      @click=${() => this.app.tree.toggleSub(sub)}>${word}</button>`;
    return html`<div class="subs" role="group" aria-label="Below the lanes">
      ${button("states", "P", "Modes", "Processes and modes below the lanes")}
      ${button("counters", "V", "Counters", "Counters below the lanes")}</div>`;
  }
}

/** Taken branches as a share of instructions, from tiles. */
function branchPoints(s: Session, lane: number, view: View, visit: Visit, width: number): { x0: number; x1: number; value: number }[] {
  const scale = width / (view.to - view.from);
  const points: { x0: number; x1: number; value: number }[] = [];
  const end = streamExtent(s.trace.streams[lane]!, view.axis).last;
  visit((stripe, columns, from, to) => {
    const first = Math.max(0, Math.floor((Math.max(from, view.from) - stripe.first) / stripe.bucket));
    const last = Math.min(TILE_BUCKETS, Math.ceil((Math.min(to, view.to) - stripe.first) / stripe.bucket));
    for (let b = first; b < last; b++) {
      if (columns.insns[b]! === 0 && view.axis === "time") continue;
      if (stripe.first + b * stripe.bucket >= end) break;
      const x0 = (stripe.first + b * stripe.bucket - view.from) * scale;
      points.push({ x0, x1: x0 + stripe.bucket * scale, value: columns.branches[b]! / 255 });
    }
  });
  return points;
}
