// SPDX-License-Identifier: MIT
// Times are 64-bit integers, and the page computes with doubles, which are exact below 2^53. So it
// counts the times of a trace from an epoch: 0 where that does, else near the first of them. It is
// a multiple of the width of any tile that is looked at, so that tiles begin at whole numbers of it.
import type { Axis } from "./scale.ts";

/** A trace, as requests name it. */
export interface Ref {
  readonly id: string;
  readonly epoch: bigint; // of its times
}

/** A tile of the coarsest level that is looked at where the epoch is not 0. */
const GRAIN = 1n << 49n;
const EXACT = 1n << 52n;

/** For a trace with times from `first` to `last`. */
export function epochOf(first: bigint, last: bigint): bigint {
  if (last < EXACT || last - first > GRAIN) return 0n;
  return first - (first % GRAIN);
}

export function epochOn(ref: Ref, axis: Axis): bigint {
  return axis === "time" ? ref.epoch : 0n;
}

/** A number or decimal text of the server's, from the epoch on; 0 where it is none. */
export function since(epoch: bigint, value: unknown): number {
  return Number(whole(value) - epoch);
}

/** The integer itself. */
export function whole(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : 0n;
}

/** A position of the page as the server counts. */
export function absolute(epoch: bigint, at: number): bigint {
  const n = BigInt(Math.floor(at)) + epoch;
  return n > 0n ? n : 0n;
}

/** A position as text, with the decimals that a step of `step` units needs. */
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

/** The position that such a text names. */
export function near(epoch: bigint, text: string): number {
  const dot = text.indexOf(".");
  const [int, part] = dot < 0 ? [text, ""] : [text.slice(0, dot), text.slice(dot)];
  return epoch === 0n ? Number(text) : since(epoch, int) + (part === "" ? 0 : Number(`0${part}`));
}
