// SPDX-License-Identifier: MIT
// What streams run at a time, of one trace or of several whose clocks are laid upon each other.
import * as api from "./api.ts";
import { absolute, since } from "./epoch.ts";
import { readInsns, type InsnRow, type Stream, type Trace } from "./model.ts";

export interface Moment {
  readonly insn: number;
  readonly time: number; // of the trace, by count of instructions
  readonly from: number; // it was no sooner …
  readonly to: number; // … and no later; Infinity: not known
  readonly row: InsnRow | undefined;
}

export function readMoments(told: unknown, epoch: bigint): Map<string, Moment> {
  const streams = (told as { streams?: Record<string, Record<string, unknown>> }).streams ?? {};
  return new Map(Object.entries(streams).map(([name, o]) => {
    const time = since(epoch, o.time);
    return [name, {
      insn: Number(o.insn), time, from: o.time_from === undefined ? time : since(epoch, o.time_from),
      to: o.time_to === undefined ? (o.time_from === undefined ? time : Infinity) : since(epoch, o.time_to),
      row: o.row === undefined ? undefined : readInsns([o.row], epoch)[0],
    }];
  }));
}

/** Streams that have times, at a time of their trace. */
export async function moments(trace: Trace, streams: readonly Stream[], time: number, signal: AbortSignal): Promise<Map<string, Moment>> {
  const names = streams.map((s) => encodeURIComponent(s.name)).join(",");
  return readMoments(await api.json(`${api.tracePath(trace.id)}/at?streams=${names}&time=${absolute(trace.epoch, Math.max(0, time))}`, signal), trace.epoch);
}

/** Two traces count time by the same clock if people gave them the same label `clock`. */
export function sameClock(a: Trace, b: Trace): boolean {
  return (a.labels.clock ?? "") !== "" && a.labels.clock === b.labels.clock;
}

function begin(trace: Trace): bigint {
  const timed = trace.streams.filter((s) => s.hasTime);
  return timed.length === 0 ? 0n : trace.epoch + BigInt(Math.floor(Math.min(...timed.map((s) => s.timeFirst))));
}

/** What is added to a time of `a` for one of `b`: by their clock, else so that both begin together. */
export function usualOffset(a: Trace, b: Trace): bigint {
  return sameClock(a, b) ? 0n : begin(b) - begin(a);
}

/** A time of `a` as `b` counts, both from their epochs on. */
export function laidUpon(a: Trace, b: Trace, time: number, offset: bigint): number {
  return Number(absolute(a.epoch, time) + offset - b.epoch);
}
