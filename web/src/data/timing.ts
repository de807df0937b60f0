// SPDX-License-Identifier: MIT
// What the server tells of interrupts, and how lengths are spread: numbers of a range of a stream.
import type { All, ExceptionsReply, ExceptionTimes, FunctionsReply, Small } from "../../gen/answers.ts";
import { json, ofStreams, streamPath } from "./api.ts";
import { absolute, epochOn, type Ref } from "../base/epoch.ts";
import { contextName, readStates } from "./lanedata.ts";
import type { Axis } from "../base/scale.ts";

export type Range = readonly [number, number]; // in units of the axis

/** Exceptions of one number; their lengths are in instructions or units of time, and none comes near 2^53. */
export type Handled = All<Small<ExceptionTimes>>;
/** Of the calls that ended. */
export type Lengths = Handled["time"];

export interface Interrupts {
  readonly timed: boolean;
  readonly time: number; // of the range
  readonly rows: readonly Handled[];
}

export async function interrupts(
  trace: Ref, stream: string, axis: Axis, range: Range | undefined, signal: AbortSignal,
): Promise<Interrupts> {
  const epoch = epochOn(trace, axis);
  const where = range ? `?unit=${axis}&from=${absolute(epoch, range[0])}&to=${absolute(epoch, range[1])}` : "";
  const told = await json(`${streamPath(trace.id, stream)}/interrupts${where}`, signal) as All<ExceptionsReply>;
  return { timed: told.about.has_time, time: Number(told.about.time), rows: told.exceptions as readonly Handled[] };
}

/** A duration and its bounds. */
export interface Bounded {
  readonly value: number;
  readonly least: number;
  readonly most: number; // Infinity: not known
}

/** How long functions had a lane, without what they called. */
export interface OwnTimes {
  readonly ran: number; // all of them
  readonly all: number; // how many there are
  readonly rows: readonly { readonly name: string; readonly pc: string; readonly calls: number; readonly insns: number; readonly time: Bounded }[];
}

/** Those with most time of a range, most first. */
export async function ownTimes(trace: Ref, stream: string, axis: Axis, range: Range, limit: number, signal: AbortSignal): Promise<OwnTimes> {
  const epoch = epochOn(trace, axis);
  const where = `unit=${axis}&from=${absolute(epoch, range[0])}&to=${absolute(epoch, range[1])}&limit=${limit}`;
  const told = await json(`${streamPath(trace.id, stream)}/functions?${where}`, signal) as All<FunctionsReply>;
  return {
    ran: Number(told.about.ran), all: Number(told.all),
    rows: told.functions.map(({ name, pc, calls, self, self_time: time }) => ({
      name, pc, calls: Number(calls), insns: Number(self),
      time: { value: Number(time.value), least: Number(time.least), most: time.unbounded === true ? Infinity : Number(time.most ?? time.value) },
    })),
  };
}

/** When a process or a machine ran in a lane. */
export interface Process {
  readonly name: string;
  runs: number;
  total: number; // units of the axis
  longest: Range;
}

/** Those that ran, most first; `sampled`: some of the changes are not seen. */
export async function processes(
  trace: Ref, stream: string, axis: Axis, range: Range, linux: boolean, signal: AbortSignal,
): Promise<{ sampled: boolean; rows: Process[] }> {
  const told = await ofStreams(trace, "states", [stream], axis, range[0], range[1], "&columns=2048", signal);
  const { sampled, runs } = readStates(told[stream] ?? {}, epochOn(trace, axis), linux);
  return { sampled, rows: ran(runs.map((run) => ({ from: run.from, to: run.to, name: contextName(run) }))) };
}

/** Stretches of time by name; a change of mode does not end what a process does. */
export function ran(runs: readonly { from: number; to: number; name: string }[]): Process[] {
  const by = new Map<string, Process>();
  for (let i = 0; i < runs.length;) {
    const { name, from } = runs[i]!;
    let { to } = runs[i]!;
    while (runs[++i]?.name === name) to = runs[i]!.to;
    if (name === "") continue;
    const known = by.get(name) ?? { name, runs: 0, total: 0, longest: [from, from] };
    known.runs++;
    known.total += to - from;
    if (to - from > known.longest[1] - known.longest[0]) known.longest = [from, to];
    by.set(name, known);
  }
  return [...by.values()].sort((a, b) => b.total - a.total);
}

/** A bar of a histogram: lengths from `from` to below `to`. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/**
 * Lengths with how often each occurs, shortest first, as `n` bars at most: of equal width, or, if the longest is many times the
 * shortest, each a constant factor wider than the one before, so that a tail is seen.
 */
export function bars(lengths: readonly (readonly [number, number])[], n: number): Bar[] {
  if (lengths.length === 0) return [];
  const [least, most] = [lengths[0]![0], lengths.at(-1)![0] + 1];
  const grows = most > 8 * Math.max(1, least);
  const edges = new Set<number>();
  for (let i = 0; i <= n; i++) {
    edges.add(Math.round(grows ? Math.max(1, least) * (most / Math.max(1, least)) ** (i / n) : least + ((most - least) * i) / n));
  }
  const sorted = [...edges].sort((a, b) => a - b);
  sorted[0] = least;
  sorted[sorted.length - 1] = most;
  const counts = sorted.map(() => 0);
  for (const [length, count] of lengths) counts[sorted.findLastIndex((edge) => edge <= length)]! += count;
  return sorted.slice(0, -1).map((from, i) => ({ from, to: sorted[i + 1]!, count: counts[i]! }));
}

/** The bars that hold the longest `share` of all: index of the first one. */
export function tail(all: readonly Bar[], share: number): number {
  const wanted = all.reduce((sum, bar) => sum + bar.count, 0) * share;
  let sum = 0;
  for (let i = all.length - 1; i > 0; i--) {
    sum += all[i]!.count;
    if (sum >= wanted) return i;
  }
  return 0;
}
