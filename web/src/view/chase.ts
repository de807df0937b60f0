// SPDX-License-Identifier: MIT
// Moves the view along with the live edge, frame by frame.
import { pace } from "../base/pace.ts";
import { Later } from "../base/later.ts";
import type { App } from "./app.ts";
import { follow, hops, settled } from "./follow.ts";
import type { Session } from "./session.ts";

/** Following continues without its tiles after this time. */
const HOP_MS = 1500;
/** If the edge runs ahead of the view, the view follows at this interval: nobody reads faster. */
const HOP_REST_MS = 600;

export class Chase {
  private hoppedAt = -Infinity; // since following began
  private readonly again: Later; // a step that had to wait
  private readonly reduced = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(private readonly app: App) {
    this.again = new Later(() => app.changed());
  }

  /** One frame of it. */
  step(s: Session): void {
    if (this.app.following === undefined) {
      s.hop = undefined;
      return;
    }
    const { first } = s.extent;
    const last = s.liveEnd;
    const newest = this.app.following;
    if (s.hop) {
      if (!s.hop.ready && performance.now() - s.hop.since < HOP_MS) return;
      s.view = s.hop.view;
      s.drawnTo = s.hop.edge;
      s.hop = undefined;
    }
    if (hops(s.view, last, Math.min(last, s.drawnTo)) || s.view.to < s.extent.first) {
      // The first step after following begins is not delayed.
      const soon = this.hoppedAt === -Infinity ? 0 : Math.max(pace.wait, this.hoppedAt + HOP_REST_MS - performance.now());
      if (soon > 0) {
        this.again.within(soon);
        return;
      }
      this.hoppedAt = performance.now();
      const view = follow(s.view, { first, last }, newest, false);
      s.hop = { view, edge: last, since: performance.now(), ready: false };
      setTimeout(() => this.app.changed(), HOP_MS);
    } else {
      const edge = { first, last: Math.max(first + 1, Math.min(last, s.drawnTo)) };
      const next = follow(s.view, edge, newest, !this.reduced.matches);
      if (settled(s.view, next)) return;
      s.view = next;
    }
    this.app.changed();
  }

  /** Following begins, or ends. Its first step is not delayed; it may begin far from the edge, or with it in view. */
  begin(s: Session): void {
    this.hoppedAt = -Infinity;
    s.hop = undefined;
    s.drawnTo = Math.min(s.drawnTo, s.view.to);
  }
}
