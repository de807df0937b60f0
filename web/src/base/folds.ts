// SPDX-License-Identifier: MIT
// Stretches of an axis that a view leaves out. What is drawn between two of them is an ordinary view of its own, so that
// only conversions to and from pixels, and moves, know of them: they go through the flat axis, which is the axis without
// the stretches.

/** [from, to) in units of the axis. */
export interface Fold {
  readonly from: number;
  readonly to: number;
}

/** Sorted, and apart from each other. */
export type Folds = readonly Fold[];

export const NO_FOLDS: Folds = [];

/** A position on the flat axis; within a fold, that of its seam. */
export function flat(folds: Folds, at: number): number {
  let out = at;
  for (const { from, to } of folds) {
    if (at <= from) break;
    out -= Math.min(at, to) - from;
  }
  return out;
}

/** The position of a flat one; at a seam, where the fold begins. */
export function unflat(folds: Folds, at: number): number {
  let out = at;
  for (const { from, to } of folds) {
    if (out <= from) break;
    out += to - from;
  }
  return out;
}

/** What remains of [from, to) without the folds, from left to right. */
export function between(folds: Folds, from: number, to: number): Fold[] {
  const out: Fold[] = [];
  let begin = from;
  for (const fold of folds) {
    if (fold.to <= begin) continue;
    if (fold.from >= to) break;
    if (fold.from > begin) out.push({ from: begin, to: fold.from });
    begin = fold.to;
  }
  if (begin < to) out.push({ from: begin, to });
  return out;
}

/** All of `more` and `folds`, joined where they touch or nearly do. */
export function joined(folds: Folds, more: Folds, nearly: number): Fold[] {
  const out: Fold[] = [];
  for (const fold of [...folds, ...more].sort((a, b) => a.from - b.from)) {
    const last = out[out.length - 1];
    if (last && fold.from <= last.to + nearly) out[out.length - 1] = { from: last.from, to: Math.max(last.to, fold.to) };
    else out.push(fold);
  }
  return out;
}

/** The `most` longest, in their order. */
export function longest(folds: Folds, most: number): Folds {
  if (folds.length <= most) return folds;
  const kept = new Set([...folds].sort((a, b) => (b.to - b.from) - (a.to - a.from)).slice(0, most));
  return folds.filter((f) => kept.has(f));
}
