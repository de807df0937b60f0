// SPDX-License-Identifier: MIT
// Which instruction each stream executes at a given time, for one trace or for several whose clocks
// are aligned.
import type { MomentsOfStreams } from "../../gen/answers.ts";
import * as api from "./api.ts";
import { absolute, since } from "../base/epoch.ts";
import { readInsns, type InsnRow, type Stream, type StreamClock, type Trace } from "./model.ts";

export interface Moment {
  readonly insn: number;
  readonly time: number; // of the trace, interpolated by instruction count
  readonly from: number; // lower bound of the real time
  readonly to: number; // upper bound; Infinity: not known
  readonly row: InsnRow | undefined;
}

export function readMoments(told: unknown, epoch: bigint): Map<string, Moment> {
  const streams = (told as Partial<MomentsOfStreams>).streams ?? {};
  return new Map(Object.entries(streams).map(([name, o]) => {
    const time = since(epoch, o.time);
    return [name, {
      insn: Number(o.insn), time, from: o.time_from === undefined ? time : since(epoch, o.time_from),
      to: o.time_to === undefined ? (o.time_from === undefined ? time : Infinity) : since(epoch, o.time_to),
      row: o.row === undefined ? undefined : readInsns([o.row], epoch)[0],
    }];
  }));
}

/** Positions of streams with time, at a time of their trace. */
export async function moments(trace: Trace, streams: readonly Stream[], time: number, signal: AbortSignal): Promise<Map<string, Moment>> {
  const names = streams.map((s) => encodeURIComponent(s.name)).join(",");
  return readMoments(await api.json(`${api.tracePath(trace.id)}/at?streams=${names}&time=${absolute(trace.epoch, Math.max(0, time))}`, signal), trace.epoch);
}

/** Two traces use the same clock if users gave them the same label `clock`. */
export function sameClock(a: Trace, b: Trace): boolean {
  return (a.labels.clock ?? "") !== "" && a.labels.clock === b.labels.clock;
}

/** Relation of a trace's times to the server's clock: that of the stream with the least jitter. */
function clockOf(trace: Trace): StreamClock | undefined {
  const clocks = trace.streams.flatMap((s) => (s.clock && s.timeIsNs ? [s.clock] : []));
  return clocks.reduce<StreamClock | undefined>((best, c) => (best && best.spread <= c.spread ? best : c), undefined);
}

/** Offset from a time of `a`, near `at` relative to its epoch, to `b`, and its accuracy in ns: by
 * the server's clock, to which both were related on arrival. */
export function byArrival(a: Trace, b: Trace, at?: number): { offset: bigint; within: number } | undefined {
  const [x, y] = [clockOf(a), clockOf(b)];
  if (!x || !y) return undefined;
  const time = at === undefined ? x.at : absolute(a.epoch, at);
  const unix = x.unix + BigInt(Math.round(Number(time - x.at) * x.rate));
  const other = y.at + BigInt(Math.round(Number(unix - y.unix) / y.rate));
  return { offset: other - time,
    within: x.spread + y.spread + Math.abs(Number(time - x.at)) * x.rateError + Math.abs(Number(other - y.at)) * y.rateError };
}

function begin(trace: Trace): bigint {
  const timed = trace.streams.filter((s) => s.hasTime);
  return timed.length === 0 ? 0n : trace.epoch + BigInt(Math.floor(Math.min(...timed.map((s) => s.timeFirst))));
}

/**
 * Offset from a time of `a` to `b`: by their clock, by the server's, otherwise aligning their
 * begins.
 */
export function usualOffset(a: Trace, b: Trace, at?: number): bigint {
  return sameClock(a, b) ? 0n : byArrival(a, b, at)?.offset ?? begin(b) - begin(a);
}

/** Convert a time of `a` to `b`, both relative to their epochs. */
export function laidUpon(a: Trace, b: Trace, time: number, offset: bigint): number {
  return Number(absolute(a.epoch, time) + offset - b.epoch);
}
