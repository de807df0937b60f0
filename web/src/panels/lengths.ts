// SPDX-License-Identifier: MIT
// How long the call under the pointer took, with its bounds: asked once the pointer rests on it.
import { locate } from "../data/api.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call } from "../data/calls.ts";
import type { Slice } from "../data/model.ts";
import type { Bounded } from "../data/timing.ts";
import { Later } from "../base/later.ts";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";

const REST_MS = 150;

export class Lengths {
  private asked: Asked<Bounded | undefined> | undefined;
  private under = ""; // the call under the pointer
  private since = 0; // ms
  private readonly rested = new Later(() => this.app.hovered());

  constructor(private readonly app: App) {}

  /** Undefined: not known yet, or not at all. Call it whenever it is shown. */
  of(s: Session, lane: number, slice: Slice): Bounded | undefined {
    const stream = s.trace.streams[lane];
    if (!stream || s.view.axis !== "time") return undefined;
    const key = [s.trace.id, s.trace.generation, stream.name, slice.depth, slice.from, slice.to].join("/");
    const now = performance.now();
    if (key !== this.under) {
      this.under = key;
      this.since = now;
    }
    if (this.asked?.key !== key && now < this.since + REST_MS) {
      this.rested.within(this.since + REST_MS - now);
      return undefined;
    }
    this.asked = ask(this.asked, key, async (signal) => {
      // In the middle of it, where it is active for sure.
      const { insn } = await locate(s.trace, stream.name, "time", Math.floor((slice.from + slice.to) / 2), signal);
      const c = await call(s.trace, stream.name, insn, slice.depth, signal);
      return c.name !== slice.name || c.timeFrom === undefined || c.timeTo === undefined ? undefined
        : { value: c.timeTo - c.timeFrom, least: c.timeLeast, most: c.timeMost };
    }, () => this.app.hovered());
    return this.asked.answer;
  }
}
