// SPDX-License-Identifier: MIT
// Sub-lanes: processes and modes as boxes, counters as curves with a scale, and software trace as
// text.
import { contextName, type Counters, type Log, type States } from "../data/lanedata.ts";
import { significant } from "../base/format.ts";
import { functionColour, type Colour } from "../view/palette.ts";
import type { View } from "../base/scale.ts";
import type { Colours } from "./colours.ts";
import { fitted, LEAST_LABEL, MONO, SANS, setFont, uncut, type Cuts } from "./labels.ts";
import type { Band, LaneBox } from "./layout.ts";

/** Power of a mode word, for its colour; undefined if it has none. */
function powerOf(mode: string): number | undefined {
  const [, kind, digit] = /^(el|ring)(\d)/.exec(mode) ?? [];
  if (digit === undefined) return { u: 0, s: 1, h: 2, m: 3 }[mode.split(".")[0] ?? ""];
  return kind === "ring" ? 3 - Number(digit) : Number(digit);
}

function drawRow(
  ctx: CanvasRenderingContext2D, states: States, view: View, width: number, y: number, h: number, colours: Colours,
  cuts: Cuts, name: (i: number) => string, colour: (i: number) => Colour,
): void {
  const scale = width / (view.to - view.from);
  setFont(ctx, `400 10px ${SANS}`);
  ctx.textBaseline = "middle";
  const { runs } = states;
  for (let i = 0; i < runs.length; i++) {
    const what = name(i);
    let end = i;
    let mixed = runs[i]!.mixed;
    while (end + 1 < runs.length && name(end + 1) === what && runs[end + 1]!.mixed === mixed) end++;
    const x0 = Math.max(-1, (runs[i]!.from - view.from) * scale);
    const x1 = Math.min(width + 1, (runs[end]!.to - view.from) * scale);
    mixed &&= x1 - x0 > 0;
    i = end;
    if (x1 < 0 || x0 > width || what === "") continue;
    ctx.globalAlpha = mixed || states.sampled ? 0.55 : 1;
    ctx.fillStyle = colour(end).css;
    ctx.fillRect(x0, y, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0)), h);
    ctx.globalAlpha = 1;
    const [first, last] = uncut(Math.max(0, x0), x1, cuts);
    if (last - first < LEAST_LABEL) continue;
    const label = fitted(ctx, what, last - first - 8);
    ctx.fillStyle = mixed || states.sampled ? colours.named.ink.css : colour(end).ink;
    if (label !== "") ctx.fillText(label, first + 4, y + h / 2 + 0.5);
  }
}

export function drawStates(
  ctx: CanvasRenderingContext2D, states: States, view: View, top: number, box: LaneBox, colours: Colours, width: number, cuts: Cuts,
): void {
  const half = Math.floor(box.states.h / 2);
  const at = (i: number): States["runs"][number] => states.runs[i]!;
  drawRow(ctx, states, view, width, top + box.states.y, half - 1, colours, cuts,
    (i) => contextName(at(i)), (i) => functionColour(contextName(at(i)), colours.theme));
  drawRow(ctx, states, view, width, top + box.states.y + half, half - 1, colours, cuts,
    (i) => at(i).mode, (i) => colours.privilege[powerOf(at(i).mode) ?? 0]!);
}

// ---- counters ----------------------------------------------------------------------------------

export interface Curve {
  readonly title: string;
  readonly points: readonly { x0: number; x1: number; value: number }[]; // NaN: not known
  readonly unit: (value: number) => string;
  readonly most: number; // maximum of the scale
  readonly sampled: boolean;
}

/** "812 M/s": instructions per second, or per tick. */
export function rateText(rate: number, ns: boolean): string {
  if (!ns) return `${significant(rate)} per tick`;
  const perSecond = rate * 1e9;
  for (const [scale, unit] of [[1e9, "G/s"], [1e6, "M/s"], [1e3, "k/s"]] as const) {
    if (perSecond >= scale * 0.9995) return `${significant(perSecond / scale)} ${unit}`;
  }
  return `${Math.round(perSecond)} /s`;
}

/** Columns of a counter in pixels. */
export function columnPoints(
  counters: Counters, values: readonly number[], view: View, width: number,
): { x0: number; x1: number; value: number }[] {
  const scale = width / (view.to - view.from);
  const wide = (counters.to - counters.from) / Math.max(1, values.length);
  return values.map((value, i) => ({
    x0: (counters.from + i * wide - view.from) * scale, x1: (counters.from + (i + 1) * wide - view.from) * scale, value,
  })).filter((p) => p.x1 > 0 && p.x0 < width);
}

/** Maximum of the scale: 1, 2 or 5 times a power of ten. */
export function niceMost(most: number): number {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= most * 0.999) ?? 10 * power;
}

/** Maximum of the scale for arbitrary values. */
export function scaleOf(points: Curve["points"]): number {
  return niceMost(points.reduce((m, p) => (Number.isNaN(p.value) ? m : Math.max(m, p.value)), 0));
}

/** Position of each curve: its baseline, and the space above it. */
function places(curves: readonly Curve[], band: Band, top: number): { curve: Curve; foot: number; room: number }[] {
  const h = Math.floor(band.h / Math.max(1, curves.length));
  return curves.map((curve, k) => ({ curve, foot: top + band.y + (k + 1) * h - 2, room: h - 6 }));
}

export function drawCurves(
  ctx: CanvasRenderingContext2D, curves: readonly Curve[], band: Band, top: number, colours: Colours, width: number,
): void {
  for (const { curve, foot, room } of places(curves, band, top)) {
    ctx.fillStyle = colours.named.line.css;
    ctx.fillRect(0, foot, width, 1);
    ctx.fillRect(0, foot - room, width, 1);
    ctx.fillStyle = colours.named.accent.css;
    ctx.globalAlpha = 0.35;
    // Edges on whole pixels, so that neighbours neither overlap nor leave gaps.
    const bars = curve.points.filter((p) => !Number.isNaN(p.value)).map((p) => {
      const x = Math.max(0, Math.round(p.x0));
      return { x, w: Math.max(1, Math.min(width, Math.round(p.x1)) - x), tall: Math.min(1, p.value / curve.most) * room };
    });
    for (const { x, w, tall } of bars) ctx.fillRect(x, foot - tall, w, tall);
    ctx.globalAlpha = 1;
    for (const { x, w, tall } of bars) ctx.fillRect(x, foot - tall - 0.5, w, 1);
  }
}

/** Names of the curves, and their scale. */
export function drawTitles(ctx: CanvasRenderingContext2D, curves: readonly Curve[], band: Band, top: number, colours: Colours): void {
  setFont(ctx, `400 10px ${SANS}`);
  ctx.textBaseline = "alphabetic";
  for (const { curve, foot, room } of places(curves, band, top)) {
    const label = `${curve.title}, 0 to ${curve.unit(curve.most)}${curve.sampled ? ", sampled" : ""}`;
    ctx.fillStyle = colours.named.ground.css;
    ctx.globalAlpha = 0.8;
    ctx.fillRect(2, foot - room + 1, ctx.measureText(label).width + 8, 12);
    ctx.globalAlpha = 1;
    ctx.fillStyle = colours.named.ink.css;
    ctx.fillText(label, 6, foot - room + 11);
  }
}

// ---- software trace ----------------------------------------------------------------------------

/** Text at its position, if neighbours leave space; returns whether any was drawn. */
export function drawLog(
  ctx: CanvasRenderingContext2D, log: Log, view: View, top: number, box: LaneBox, colours: Colours, width: number, cuts: Cuts,
): boolean {
  const scale = width / (view.to - view.from);
  const at = (i: number): number | undefined => {
    const e = log.entries[i];
    return e && (view.axis === "time" ? e.time : e.at);
  };
  setFont(ctx, `400 11px ${MONO}`);
  ctx.textBaseline = "middle";
  const y = top + box.fn.y;
  const middle = y + box.fn.h / 2;
  let drawn = false;
  for (let i = 0; i < log.entries.length; i++) {
    const from = at(i);
    if (from === undefined) continue;
    const x = (from - view.from) * scale;
    if (x > width) break;
    const next = at(i + 1);
    const [begin, end] = uncut(Math.max(0, x), next === undefined ? width : Math.min(width, (next - view.from) * scale), cuts);
    if (end < 0 || end - begin < LEAST_LABEL) continue;
    const e = log.entries[i]!;
    const label = fitted(ctx, e.text, end - begin - 8);
    if (label === "") continue;
    // The line's own records continue after it.
    ctx.fillStyle = colours.named.ground.css;
    ctx.fillRect(begin + 1, middle - 9, ctx.measureText(label).width + 7, 18);
    ctx.fillStyle = e.isText ? colours.named.software.css : colours.named.muted.css;
    ctx.fillRect(begin, y, 2, box.fn.h);
    ctx.fillStyle = e.isText ? colours.named.ink.css : colours.named.muted.css;
    ctx.fillText(label, begin + 5, middle + 0.5);
    drawn = true;
  }
  return drawn;
}
