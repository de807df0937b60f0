// SPDX-License-Identifier: MIT
// What in a trace is worth a look first, as the server tells it.
import type { ExtremesReply } from "../../gen/answers.ts";
import { json, tracePath } from "./api.ts";
import { since, type Ref } from "../base/epoch.ts";

/** Streams of more instructions are walked only if that is requested. */
export const UNASKED = 20_000_000;

export interface Extreme {
  readonly kind: "interrupt" | "call" | "gap";
  readonly stream: string;
  readonly name: string; // of the function or handler
  readonly number: number | undefined; // of an interrupt
  readonly reasons: readonly string[]; // of a gap
  readonly at: number; // instruction
  readonly timed: boolean; // lengths are times
  readonly length: number;
  readonly usual: number; // 0: nothing is
  readonly span: readonly [number, number] | undefined; // of a gap
}

export interface Extremes {
  readonly found: readonly Extreme[];
  readonly more: boolean; // long streams are left out
}

export async function extremes(trace: Ref, all: boolean, signal: AbortSignal): Promise<Extremes> {
  const told = await json(`${tracePath(trace.id)}/extremes${all ? "" : `?most=${UNASKED}`}`, signal) as Partial<ExtremesReply>;
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  return {
    more: Number(told.left_out ?? 0) > 0,
    found: (told.extremes ?? []).map((e) => ({
      kind: text(e.kind) as Extreme["kind"], stream: text(e.stream), name: text(e.name), number: e.exception === undefined ? undefined : Number(e.exception),
      reasons: Array.isArray(e.reasons) ? e.reasons.map(text) : [], at: Number(e.at), timed: e.has_time === true,
      length: Number(e.length), usual: Number(e.usual), span: e.kind === "gap" ? [since(trace.epoch, e.time_from), since(trace.epoch, e.time_to)] as const : undefined,
    })),
  };
}
