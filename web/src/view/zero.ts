// SPDX-License-Identifier: MIT
// Where people's times begin: at the first time of the trace, so that they are short and begin at 0; or, if the user
// asks for its clock, where that begins. Links and requests always have the clock's times.
import { extentOf, type Trace } from "../data/model.ts";
import type { Ref } from "../base/epoch.ts";

const KEY = "tracelake.clock";

/** What a time is told with: whose it is, and from where it counts. */
export interface Timed {
  readonly trace: Ref;
  readonly zero: bigint; // in times of the clock
}

/** `clock`: times of the clock. */
export function zeroOf(trace: Trace, clock: boolean): bigint {
  return clock ? 0n : BigInt(extentOf(trace, "time").first) + trace.epoch;
}

/** The user's choice, in this browser. */
export function clockWanted(): boolean {
  return localStorage.getItem(KEY) !== null;
}

export function wantClock(on: boolean): void {
  if (on) localStorage.setItem(KEY, "1");
  else localStorage.removeItem(KEY);
}
