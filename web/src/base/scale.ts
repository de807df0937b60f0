// SPDX-License-Identifier: MIT
// The visible range of an axis, and the ruler. Positions are doubles in units of the axis
// (instructions or time), exact to one unit below 2^53. Times are relative to the trace's epoch
// (epoch.ts).
import { between, flat, NO_FOLDS, unflat, type Folds } from "./folds.ts";
import { grouped, roundTime } from "./format.ts";

export type Axis = "insn" | "time";

/** The visible range: [from, to) over `width` CSS pixels. */
export interface View {
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
  /** Stretches that are left out, on the time axis. */
  readonly folds?: Folds | undefined;
}

export interface Extent {
  readonly first: number;
  readonly last: number; // end, exclusive
}

/** The narrowest view, in units over the whole width. */
export const MIN_SPAN = 8;
/** The narrowest view whose positions can be distinguished as doubles. */
function least(extent: Extent): number {
  return Math.max(MIN_SPAN, 2 ** Math.ceil(Math.log2(Math.max(1, extent.last)) - 42));
}

/** Maximum empty space that a view may show outside the trace, as a fraction of its span. */
const MARGIN = 0.5;

/** How much of the axis is seen, without folds. */
export function span(view: View): number {
  return view.folds ? flat(view.folds, view.to) - flat(view.folds, view.from) : view.to - view.from;
}

/** Units per pixel. */
export function unitsPerPixel(view: View, width: number): number {
  return span(view) / Math.max(1, width);
}

export function toPixel(view: View, width: number, at: number): number {
  const { folds = NO_FOLDS } = view;
  return ((flat(folds, at) - flat(folds, view.from)) / span(view)) * width;
}

export function toUnit(view: View, width: number, pixel: number): number {
  const { folds = NO_FOLDS } = view;
  return unflat(folds, flat(folds, view.from) + (pixel / Math.max(1, width)) * span(view));
}

/** A part of a view without folds, as a view of its own. */
export interface Window {
  readonly view: View;
  readonly x: number; // its left edge in pixels
  readonly width: number;
  readonly index: number;
}

/** The windows between a view's folds, from left to right; they begin and end at whole pixels. */
export function windows(view: View, width: number): Window[] {
  if (!view.folds) return [{ view, x: 0, width, index: 0 }];
  const { axis } = view;
  return between(view.folds, view.from, view.to).flatMap(({ from, to }, index) => {
    const [x, end] = [from, to].map((at) => Math.round(toPixel(view, width, at))) as [number, number];
    return end > x ? [{ view: { axis, from, to }, x, width: end - x, index }] : [];
  });
}

/** Computes on the flat axis, and returns to that of the view. */
function onFlat(view: View, extent: Extent, move: (view: View, extent: Extent, narrowest: number) => View): View {
  const { axis, folds } = view;
  if (!folds || folds.length === 0) return move({ axis, from: view.from, to: view.to }, extent, least(extent));
  const there = move({ axis, from: flat(folds, view.from), to: flat(folds, view.to) },
    { first: flat(folds, extent.first), last: flat(folds, extent.last) }, least(extent));
  return { axis, from: unflat(folds, there.from), to: unflat(folds, there.to), folds };
}

function clamped(view: View, extent: Extent, narrowest: number): View {
  const whole = Math.max(extent.last - extent.first, narrowest);
  const wide = Math.min(Math.max(span(view), narrowest), whole * (1 + MARGIN));
  const margin = wide * MARGIN;
  let from = span(view) === wide ? view.from : (view.from + view.to - wide) / 2;
  from = Math.min(Math.max(from, extent.first - margin), Math.max(extent.first, extent.last) - wide + margin);
  if (whole <= wide) {
    from = Math.min(Math.max(from, extent.last - wide - margin), extent.first + margin);
  }
  return { axis: view.axis, from, to: from + wide };
}

/** Clamp the span, and keep at least part of the trace visible. */
export function clamp(view: View, extent: Extent): View {
  return onFlat(view, extent, clamped);
}

/** Everything, with some space at the right. */
export function whole(axis: Axis, extent: Extent, folds?: Folds): View {
  return onFlat({ axis, from: extent.first, to: extent.last, folds }, extent, (_, { first, last }, narrowest) => (
    { axis, from: first, to: first + Math.max(last - first, narrowest) * 1.01 }));
}

/** `factor` < 1 zooms in; `anchor` (in units) stays in place. */
export function zoom(view: View, factor: number, anchor: number, extent: Extent): View {
  const fixed = flat(view.folds ?? NO_FOLDS, anchor);
  return onFlat(view, extent, (v, e, narrowest) => {
    const most = Math.max(e.last - e.first, narrowest) * (1 + MARGIN);
    const wide = Math.min(Math.max(span(v) * factor, narrowest), most);
    const from = fixed - (fixed - v.from) * (wide / span(v));
    return clamped({ axis: v.axis, from, to: from + wide }, e, narrowest);
  });
}

/** By `share` of the view's width; > 0 moves right. */
export function pan(view: View, share: number, extent: Extent): View {
  return onFlat(view, extent, (v, e, narrowest) => {
    const by = span(v) * share;
    return clamped({ axis: v.axis, from: v.from + by, to: v.to + by }, e, narrowest);
  });
}

/** The same span with `at` at `share` of its width. */
export function place(view: View, at: number, share: number, extent: Extent): View {
  const fixed = flat(view.folds ?? NO_FOLDS, at);
  return onFlat(view, extent, (v, e, narrowest) => {
    const from = fixed - span(v) * share;
    return clamped({ axis: v.axis, from, to: from + span(v) }, e, narrowest);
  });
}

/** The same span centred at `at`. */
export function centre(view: View, at: number, extent: Extent): View {
  return place(view, at, 0.5, extent);
}

export interface Tick {
  readonly at: number;
  readonly label: string; // "" for a minor one
}

/** The smallest of 1, 2, 5 × 10^n that is at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const m of [1, 2, 5, 10]) {
    if (m * power >= least * (1 - 1e-9)) return m * power;
  }
  return 10 * power;
}

/** Numbers of the ruler with more digits than these are written as distances from a round one. */
const MOST_DECIMALS = 4; // of times in ns
const MOST_DIGITS = 9;

export interface Ruler {
  readonly base: string; // what labels that begin with + are added to; "": nothing
  readonly ticks: readonly Tick[];
}

/** Digits that tell steps apart in numbers of units. */
function digits(units: number, step: number): number {
  return Math.max(0, Math.ceil(Math.log10(units / step) - 1e-9));
}

/** Is a number too long for a label? */
function isLong(most: number, step: number, ns: boolean): boolean {
  if (!ns) return digits(most, step) > MOST_DIGITS;
  const [scale] = TIME_UNITS.find(([units]) => most >= units) ?? [1];
  return digits(scale, step) > MOST_DECIMALS;
}

/**
 * The ruler, with labels at least `spacing` pixels apart. `ns`: the time axis is in ns. `origin` is the number shown
 * at position 0.
 */
export function ruler(view: View, width: number, spacing: number, ns: boolean, origin = 0n): Ruler {
  const step = Math.max(1, niceStep(unitsPerPixel(view, width) * spacing));
  const minor = step >= 5 ? step / 5 : step;
  const inNs = view.axis === "time" && ns;
  let base = 0n;
  if (isLong(Number(BigInt(Math.ceil(view.to)) + origin), step, inNs)) {
    const round = BigInt(10 ** Math.ceil(Math.log10(1000 * step)));
    const from = BigInt(Math.floor(view.from)) + origin;
    base = from > 0n ? from - (from % round) : 0n;
  }
  const zero = Number(base - origin);
  const ticks: Tick[] = [];
  const first = Math.floor((view.from - zero) / minor);
  const last = Math.ceil((view.to - zero) / minor);
  for (let i = first; i <= last && ticks.length < 1000; i++) {
    const at = i * minor;
    if (at < 0) continue;
    const major = Math.abs(at / step - Math.round(at / step)) < 1e-6;
    const label = major ? tickLabel(at, step, inNs) : "";
    ticks.push({ at: at + zero, label: major && base > 0n ? `+${label}` : label });
  }
  return { base: base === 0n ? "" : inNs ? roundTime(base) : grouped(base), ticks };
}

const INSN_UNITS = [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]] as const;
const TIME_UNITS = [[1e9, " s"], [1e6, " ms"], [1e3, " µs"], [1, " ns"]] as const;

/** As many digits as distinguish neighbours, in the unit with the shortest number. */
export function tickLabel(at: number, step: number, ns: boolean): string {
  if (at === 0) return ns ? "0 s" : "0";
  const units = ns ? TIME_UNITS : INSN_UNITS;
  for (const [i, [scale, unit]] of units.entries()) {
    if (at < scale && scale > 1) continue;
    const decimals = digits(scale, step);
    // Long fractions are harder to read than grouped integers.
    if (decimals > 0 && scale > 1 && (decimals > MOST_DECIMALS || (i > 0 && at >= 1000 * scale))) continue;
    const value = at / scale;
    return decimals === 0 ? `${grouped(Math.round(value))}${unit}`
      : `${grouped(Math.floor(value + 1e-9))}.${fraction(value, decimals)}${unit}`;
  }
  return `${grouped(at)}${ns ? " ns" : ""}`;
}

function fraction(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  return text.slice(text.indexOf(".") + 1);
}
