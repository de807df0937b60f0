// SPDX-License-Identifier: MIT
// Limits how much a page requests on its own while a trace grows: tiles that got longer, calls at
// the edge, counts. The page pays for each answer from a budget that refills at a fixed rate, and
// sends no further request of its own until the last one is paid. So the load is bounded whatever
// the zoom, the number of lanes and the speed of the rig. Requests caused by the user are never
// delayed.

/** Bytes per millisecond, including events: well below 100 KB per second. */
const RATE = 70;
/**
 * The cost of opening and zooming is forgotten after some seconds; no single answer counts more.
 */
const MOST = 5000 * RATE;

export class Pace {
  private debt = 0; // bytes
  private at = 0; // ms

  constructor(private readonly now: () => number = () => performance.now()) {}

  spend(bytes: number): void {
    this.debt = Math.min(MOST, this.left() + bytes);
    this.at = this.now();
  }

  /** Milliseconds during which no automatic requests are to be made. */
  get wait(): number {
    return this.left() / RATE;
  }

  private left(): number {
    return Math.max(0, this.debt - (this.now() - this.at) * RATE);
  }
}

/** The page's instance. */
export const pace = new Pace();

/** Count fetched bytes from now on, while `counts` returns true. */
export function observe(counts: () => boolean): void {
  new PerformanceObserver((list) => {
    if (counts()) for (const entry of list.getEntries() as PerformanceResourceTiming[]) pace.spend(entry.transferSize);
    performance.clearResourceTimings();
  }).observe({ type: "resource" });
}
