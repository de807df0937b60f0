// SPDX-License-Identifier: MIT
// Times are 64-bit integers, but the page computes with doubles, which are exact below 2^53. So it
// stores times relative to an epoch of the trace: 0 if that is precise enough, otherwise a value
// near the first time. The epoch is a multiple of the width of every tile in use, so that tiles
// begin at integers.
import type { Axis } from "./scale.ts";

/** Identifies a trace in requests. */
export interface Ref {
  readonly id: string;
  readonly epoch: bigint; // origin of its times
}

/** Minimum size of a coarsest tile for which the epoch is not 0. */
const GRAIN = 1n << 49n;
const EXACT = 1n << 52n;

/** The epoch for a trace with times from `first` to `last`. */
export function epochOf(first: bigint, last: bigint): bigint {
  if (last < EXACT || last - first > GRAIN) return 0n;
  return first - (first % GRAIN);
}

export function epochOn(ref: Ref, axis: Axis): bigint {
  return axis === "time" ? ref.epoch : 0n;
}

/** Convert the server's number or decimal string to a value relative to the epoch; 0 if invalid. */
export function since(epoch: bigint, value: unknown): number {
  return Number(whole(value) - epoch);
}

/** The exact integer. */
export function whole(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : 0n;
}

/** Convert a position of the page to the server's. */
export function absolute(epoch: bigint, at: number): bigint {
  const n = BigInt(Math.floor(at)) + epoch;
  return n > 0n ? n : 0n;
}

/** Format a position with the decimals needed for steps of `step` units. */
export function exact(epoch: bigint, at: number, step: number): string {
  if (step >= 1) return String(BigInt(Math.round(at)) + epoch);
  const digits = Math.min(3, Math.ceil(-Math.log10(step)));
  if (epoch === 0n) return String(Number(at.toFixed(digits)));
  const below = Math.floor(at);
  const part = (at - below).toFixed(digits);
  const carry = part.startsWith("1") ? 1n : 0n;
  const decimals = part.slice(1).replace(/\.?0+$/, "");
  return `${BigInt(below) + carry + epoch}${decimals}`;
}

/** Parse such a text. */
export function near(epoch: bigint, text: string): number {
  const dot = text.indexOf(".");
  const [int, part] = dot < 0 ? [text, ""] : [text.slice(0, dot), text.slice(dot)];
  return epoch === 0n ? Number(text) : since(epoch, int) + (part === "" ? 0 : Number(`0${part}`));
}
