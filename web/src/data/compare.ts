// SPDX-License-Identifier: MIT
// The comparison of two runs, as the server reports it.
import type { CompareFrame, CompareReply, CompareSide, Keys, Whole } from "../../gen/answers.ts";
import { json, streamPath } from "./api.ts";
import type { Weight } from "./calls.ts";

export interface Hunk {
  readonly aFrom: number;
  readonly aTo: number;
  readonly bFrom: number;
  readonly bTo: number;
}

export interface Difference {
  readonly name: string;
  readonly selfA: number; // instructions, or units of time
  readonly selfB: number;
  readonly callsA: number;
  readonly callsB: number;
}

export interface Comparison {
  readonly total: number;
  readonly onlyA: number;
  readonly onlyB: number;
  readonly lost: boolean;
  readonly fromA: number;
  readonly fromB: number;
  readonly insnsA: number;
  readonly insnsB: number;
  readonly hunks: readonly Hunk[];
  readonly stackA: readonly string[];
  readonly stackB: readonly string[];
  readonly functions: readonly Difference[];
}

const count = <T>(o: T, key: Keys<T, Whole>): number => Number(o[key] ?? 0);

/** Instructions of each side to compare. */
export interface Ranges {
  readonly a: readonly [number, number];
  readonly b: readonly [number, number];
}

/** Compare a stream with another, "TRACE/STREAM": everything, or these instructions; `weight`: of the functions. */
export async function compare(
  trace: string, stream: string, ranges: Ranges | undefined, other: string,
  calls: boolean, weight: Weight, signal: AbortSignal,
): Promise<Comparison> {
  const part = ranges ? `&from=${ranges.a[0]}&to=${ranges.a[1]}&with_from=${ranges.b[0]}&with_to=${ranges.b[1]}` : "";
  const o = await json(`${streamPath(trace, stream)}/compare?with=${encodeURIComponent(other)}`
    + `&calls=${calls ? 1 : 0}&hunks=1000&weight=${weight}${part}`, signal) as CompareReply;
  const side = (s: CompareSide | undefined): number => (s ? count(s, "to") - count(s, "from") : 0);
  const begin = (s: CompareSide | undefined): number => (s ? count(s, "from") : 0);
  const names = (stack: readonly CompareFrame[]): string[] => stack.map((f) => f.name || "unnamed code");
  return {
    total: count(o, "total"), onlyA: count(o, "only_a"), onlyB: count(o, "only_b"), lost: o.lost === true,
    fromA: begin(o.a), fromB: begin(o.b), insnsA: side(o.a), insnsB: side(o.b), stackA: names(o.stack_a), stackB: names(o.stack_b),
    hunks: o.hunks.map((h) => ({
      aFrom: count(h, "a_from"), aTo: count(h, "a_to"), bFrom: count(h, "b_from"), bTo: count(h, "b_to"),
    })),
    functions: o.functions.map((f) => ({
      name: f.name, selfA: count(f, "self_a"), selfB: count(f, "self_b"),
      callsA: count(f, "calls_a"), callsB: count(f, "calls_b"),
    })),
  };
}

/** A row of the side-by-side view: instruction numbers, undefined if the other side has more. */
export interface Pair {
  readonly a: number | undefined;
  readonly b: number | undefined;
  readonly same: boolean;
}

/** A hunk with equal context around it; only the first instructions of long ones. */
export function pairs(hunk: Hunk, around: number, most: number, ends: readonly [number, number]): Pair[] {
  const rows: Pair[] = [];
  const before = Math.min(around, hunk.aFrom, hunk.bFrom);
  for (let i = before; i > 0; i--) rows.push({ a: hunk.aFrom - i, b: hunk.bFrom - i, same: true });
  const [la, lb] = [hunk.aTo - hunk.aFrom, hunk.bTo - hunk.bFrom];
  for (let i = 0; i < Math.min(most, Math.max(la, lb)); i++) {
    rows.push({ a: i < la ? hunk.aFrom + i : undefined, b: i < lb ? hunk.bFrom + i : undefined, same: false });
  }
  const behind = Math.min(around, ends[0] - hunk.aTo, ends[1] - hunk.bTo);
  if (Math.max(la, lb) <= most) {
    for (let i = 0; i < behind; i++) rows.push({ a: hunk.aTo + i, b: hunk.bTo + i, same: true });
  }
  return rows;
}
