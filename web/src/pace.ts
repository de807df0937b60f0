// SPDX-License-Identifier: MIT
// How much a page asks for by itself while a trace grows: tiles that got longer, calls at the edge, counts.
// Answers are paid for at a fixed rate, and nothing is asked for by itself before that is done: whatever
// the zoom, the lanes and the rig's rate, it is no more. What people do is never waited for.

/** Bytes a millisecond, events included: well below 100 KB a second. */
const RATE = 70;
/** What opening and zooming cost is forgotten after some seconds; no single answer is longer. */
const MOST = 5000 * RATE;

export class Pace {
  private debt = 0; // bytes
  private at = 0; // ms

  constructor(private readonly now: () => number = () => performance.now()) {}

  spend(bytes: number): void {
    this.debt = Math.min(MOST, this.left() + bytes);
    this.at = this.now();
  }

  /** So many milliseconds nothing is to be asked for by itself. */
  get wait(): number {
    return this.left() / RATE;
  }

  private left(): number {
    return Math.max(0, this.debt - (this.now() - this.at) * RATE);
  }
}

/** The page's. */
export const pace = new Pace();

/** Count what is fetched from now on, as long as `counts` says so. */
export function observe(counts: () => boolean): void {
  new PerformanceObserver((list) => {
    if (counts()) for (const entry of list.getEntries() as PerformanceResourceTiming[]) pace.spend(entry.transferSize);
    performance.clearResourceTimings();
  }).observe({ type: "resource" });
}
