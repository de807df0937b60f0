// SPDX-License-Identifier: MIT
// Call stacks: all slices of a lane are painted into one strip, one pixel high per level, which is
// then stretched over its rows. A view has tens of thousands of slices, and one rectangle for each
// would take most of a frame.
import type { Slice } from "../data/model.ts";
import type { Window } from "../base/scale.ts";
import type { Colours } from "./colours.ts";
import { fittedName, LEAST_LABEL, SANS, setFont, uncut, type Cuts } from "./labels.ts";
import { STACK_ROW, type LaneBox } from "./layout.ts";

const rowsOf = new WeakMap<readonly Slice[], readonly (readonly Slice[])[]>();

/** Slices by depth, each row from left to right; sorted once. */
function byRow(slices: readonly Slice[]): readonly (readonly Slice[])[] {
  let known = rowsOf.get(slices);
  if (known) return known;
  const rows: Slice[][] = [];
  for (const slice of slices) (rows[slice.depth] ??= []).push(slice);
  for (const row of rows) row?.sort((a, b) => a.from - b.from);
  rowsOf.set(slices, known = rows);
  return known;
}

/** Maximum depth. */
export function levels(slices: readonly Slice[]): number {
  return byRow(slices).length;
}

/** The first slice of a row that ends after `at`. */
function firstBehind(row: readonly Slice[], at: number): number {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle]!.to > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The slice of a depth at a position; one narrower than `slack` is treated as that wide. */
export function sliceIn(slices: readonly Slice[], depth: number, at: number, slack: number): Slice | undefined {
  const row = byRow(slices)[depth];
  if (!row) return undefined;
  for (let i = firstBehind(row, at - slack); i < row.length && row[i]!.from <= at; i++) {
    const slice = row[i]!;
    if (Math.max(slice.to, slice.from + slack) > at) return slice;
  }
  return undefined;
}

/** A slice that may be wide enough for its name. */
interface Wide {
  readonly x0: number; // pixels of the strip
  readonly x1: number;
  readonly row: number;
  readonly name: string;
}

/** A lane's strip. It extends by half a view on each side, for panning. */
interface Strip {
  readonly key: readonly unknown[];
  readonly scale: number; // pixels per unit
  readonly from: number; // units: its left edge
  readonly canvas: OffscreenCanvas;
  readonly wide: readonly Wide[];
}

/** More than a view has windows. */
const WINDOWS = 64;

export class Stacks {
  private readonly strips = new Map<number, Strip>(); // by lane and window

  /** Drop those of lanes that are no longer visible. */
  keep(lanes: ReadonlySet<number>): void {
    for (const key of this.strips.keys()) if (!lanes.has(Math.floor(key / WINDOWS))) this.strips.delete(key);
  }

  /** Outermost on top. */
  draw(
    ctx: CanvasRenderingContext2D, slices: readonly Slice[], { view, width, index }: Window, top: number, box: LaneBox, colours: Colours, cuts: Cuts,
  ): void {
    const rows = Math.floor(box.stack.h / STACK_ROW);
    if (rows === 0) return;
    const scale = width / (view.to - view.from);
    const key = [slices, rows, colours, width];
    const at = box.lane * WINDOWS + index;
    let strip = this.strips.get(at);
    // By whole pixels: then it is the same picture at another position.
    const moved = strip && key.every((x, i) => x === strip!.key[i]) && Math.abs(strip.scale / scale - 1) < 1e-9
      ? (view.from - strip.from) * scale : NaN;
    const whole = Math.abs(moved - Math.round(moved)) < 0.01;
    let left = Math.round(moved);
    if (!strip || !whole || left < 0 || left + width > strip.canvas.width) {
      left = whole ? Math.floor(width / 2) : 0;
      strip = paint(key, slices, view.from - left / scale, scale, width + 2 * left, rows, colours, strip?.canvas);
      this.strips.set(at, strip);
    }
    const y = top + box.stack.y;
    ctx.imageSmoothingEnabled = false;
    // Row by row, with the background between them.
    for (let row = 0; row < rows; row++) ctx.drawImage(strip.canvas, left, row, width, 1, 0, y + row * STACK_ROW, width, STACK_ROW - 1);
    setFont(ctx, `400 10.5px ${SANS}`);
    ctx.textBaseline = "middle";
    for (const { x0, x1, row, name } of strip.wide) {
      const [first, end] = uncut(Math.max(0, x0 - left), Math.min(x1 - left, width), cuts);
      if (end - first < LEAST_LABEL) continue;
      const text = fittedName(ctx, name, end - first - 9);
      ctx.fillStyle = colours.named_(name).ink;
      if (text !== "") ctx.fillText(text, first + 4, y + row * STACK_ROW + (STACK_ROW - 1) / 2 + 0.5);
    }
  }
}

function paint(
  key: readonly unknown[], slices: readonly Slice[], from: number, scale: number, width: number, rows: number, colours: Colours,
  old: OffscreenCanvas | undefined,
): Strip {
  const image = new ImageData(width, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const wide: Wide[] = [];
  const to = from + width / scale;
  byRow(slices).slice(0, rows).forEach((row, depth) => {
    const line = depth * width;
    let drawn = 0; // drawn up to here
    for (let i = firstBehind(row, from); i < row.length && row[i]!.from < to; i++) {
      const slice = row[i]!;
      const x0 = Math.round((slice.from - from) * scale);
      const x1 = Math.round((slice.to - from) * scale);
      // The first of several in one pixel is visible.
      const first = Math.max(0, x0);
      if (x1 - x0 < 1 && first < drawn) continue;
      const end = Math.min(width, x0 + Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0)));
      const rgba = (slice.name === "" ? colours.named.mixed : colours.named_(slice.name)).rgba;
      for (let x = first; x < end; x++) pixels[line + x] = rgba;
      drawn = Math.max(drawn, end);
      if (x1 - x0 >= LEAST_LABEL) wide.push({ x0, x1, row: depth, name: slice.name });
    }
  });
  const canvas = old && old.width === width && old.height === rows ? old : new OffscreenCanvas(width, rows);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return { key, scale, from, canvas, wide };
}
