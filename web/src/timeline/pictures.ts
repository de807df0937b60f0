// SPDX-License-Identifier: MIT
// Pictures of lanes' tiles, one pixel per bucket, painted once and then stretched to the view:
// panning and zooming repaint nothing. The number of pictures kept is bounded, and so is the
// number painted per frame.
import type { Slice } from "../data/model.ts";
import type { Extent, View } from "../base/scale.ts";
import { TILE_BUCKETS, type Columns, type Stripe } from "../data/tile.ts";
import type { Colours } from "./colours.ts";
import { innermost } from "./labels.ts";
import { STACK_ROW, type LaneBox } from "./layout.ts";
import { areaHeight, markOf, messageHeight, paintAreas, paintDepth, paintMarks, type Look, type Target } from "./paint.ts";

/** Pictures that are not in view are evicted above this size. */
const KEPT_BYTES = 12 << 20;
/** Time per frame for creating pictures; others are created in the next frames. */
const FRAME_MS = 0.7;
/** From this width on marks are drawn individually, below half of it with the other bands. */
const SINGLE = 4;
/** From this width on a coarser stand-in would be misleading. */
const COARSE = 12;

/** Visible part of a lane's tile. */
export interface Shown {
  readonly view: View;
  readonly width: number; // pixels of the view
  readonly box: LaneBox;
  readonly top: number; // of the lane
  readonly extent: Extent; // of the lane
  readonly stripe: Stripe;
  readonly columns: Columns;
  readonly from: number; // units
  readonly to: number;
  readonly exact: boolean; // of the requested level; otherwise a stand-in, and drawn as one
  readonly outline: boolean; // of the call stack's depth: not all slices are drawn over it
  readonly moments: boolean;
  readonly share: boolean;
  readonly rings: boolean;
  readonly slices: readonly Slice[] | undefined; // for code without symbols: they give the band's colours
}

interface Picture {
  readonly key: readonly unknown[];
  readonly look: Look;
  readonly areas: OffscreenCanvas;
  marks: OffscreenCanvas | undefined;
  depth: OffscreenCanvas | undefined;
  bytes: number;
  used: number; // last frame in which it was used
}

function canvasOf(width: number, height: number, paint: (target: Target) => void): OffscreenCanvas {
  const canvas = new OffscreenCanvas(width, Math.max(1, height));
  const image = new ImageData(width, Math.max(1, height));
  paint({ pixels: new Uint32Array(image.data.buffer), width, height: image.height });
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return canvas;
}

export class Pictures {
  private readonly held = new Map<Columns, Picture>();
  private bytes = 0;
  private frame = 0;
  private spent = 0;
  /** Were some not created for lack of time? */
  late = false;

  begin(): void {
    this.frame++;
    this.spent = 0;
    this.late = false;
    for (const [columns, picture] of this.held) {
      if (this.bytes <= KEPT_BYTES || picture.used >= this.frame - 1) break;
      this.held.delete(columns);
      this.bytes -= picture.bytes;
    }
  }

  /** Draw what is loaded; `must`: even if it exceeds the frame's time. False: out of time. */
  draw(ctx: CanvasRenderingContext2D, shown: Shown, colours: Colours, must: boolean): boolean {
    const picture = this.of(shown, colours, must);
    if (!picture) return false;
    const { view, width, box, top } = shown;
    const scale = width / (view.to - view.from);
    const wide = shown.stripe.bucket * scale;
    const left = (shown.stripe.first - view.from) * scale;
    const pixel = (at: number): number => Math.min(width, Math.max(0, Math.round((at - view.from) * scale)));
    // Whatever exists is at least one pixel, also at the end.
    const [from, to] = [Math.max(shown.from, shown.extent.first), Math.min(shown.to, shown.extent.last)];
    if (to <= from || to <= view.from || from >= view.to) return true;
    const x0 = Math.min(pixel(shown.from), width - 1);
    const x1 = Math.max(pixel(to), x0 + 1, Math.min(pixel(from), width - 1) + 1);
    const sx = Math.max(0, (x0 - left) / wide);
    const sw = Math.min(TILE_BUCKETS - sx, (x1 - x0) / wide);
    if (sw <= 0) return true;
    ctx.imageSmoothingEnabled = false;
    ctx.globalAlpha = shown.exact ? 1 : 0.5;
    const skip = wide < 2 && !shown.moments ? 0 : box.fn.y;
    const h = picture.areas.height - skip;
    ctx.drawImage(picture.areas, sx, skip, sw, h, x0, top + skip, x1 - x0, h);
    if (wide >= SINGLE || shown.moments) {
      this.singly(ctx, picture, shown, colours, wide, left, x0, x1);
    } else if (wide >= 2) {
      picture.marks ??= this.add(picture, 2 * TILE_BUCKETS, box.marks.h, (t) => paintMarks(t, picture.look, shown.columns, colours));
      ctx.drawImage(picture.marks, 2 * sx, 0, 2 * sw, box.marks.h, x0, top + box.marks.y, x1 - x0, box.marks.h);
    }
    const rows = Math.floor(box.stack.h / STACK_ROW);
    if (shown.outline && rows > 0) {
      if (picture.depth?.height !== rows) picture.depth = this.add(picture, TILE_BUCKETS, rows, (t) => paintDepth(t, shown.columns, colours), picture.depth);
      ctx.drawImage(picture.depth, sx, 0, sw, rows, x0, top + box.stack.y, x1 - x0, rows * STACK_ROW);
    }
    ctx.globalAlpha = 1;
    if (!shown.exact && wide >= COARSE) drawUnknown(ctx, box, top, x0, x1, colours);
    return true;
  }

  private singly(
    ctx: CanvasRenderingContext2D, { look }: Picture, shown: Shown, colours: Colours, wide: number, left: number, x0: number, x1: number,
  ): void {
    const { columns, box, top } = shown;
    const foot = top + box.marks.y + box.marks.h;
    const b1 = Math.min(TILE_BUCKETS, Math.ceil((x1 - left) / wide));
    for (let b = Math.max(0, Math.floor((x0 - left) / wide)); b < b1; b++) {
      const x = Math.min(shown.width - 1, Math.max(x0, Math.round(left + b * wide)));
      if (look.moments && columns.insns[b]! > 0) {
        const h = messageHeight(box, columns.insns[b]!);
        ctx.fillStyle = colours.named.software.css;
        ctx.fillRect(x, top + box.fn.y + box.fn.h - h, Math.min(2, Math.max(1, x1 - x)), h);
      }
      const mark = markOf(columns, b, look, colours, wide);
      if (!mark) continue;
      const end = Math.min(x1, mark.block ? Math.round(left + (b + 1) * wide) : x + 2);
      // A stand-in does not show where in its bucket something was lost: a line.
      const h = mark.block && !shown.exact && wide >= 8 ? 2 : mark.h;
      ctx.fillStyle = mark.colour.css;
      ctx.fillRect(x, mark.block ? foot - box.marks.h : foot - h, Math.max(1, end - x), h);
    }
  }

  private of(shown: Shown, colours: Colours, must: boolean): Picture | undefined {
    const { box, columns, stripe } = shown;
    const timed = shown.view.axis === "time";
    const key = [colours, timed, shown.moments, shown.share, shown.slices, box.marks.h, box.fn.y, box.fn.h, box.privilege.h, box.density.h];
    const known = this.held.get(columns);
    if (known) {
      known.used = this.frame;
      this.held.delete(columns);
      this.held.set(columns, known);
      if (key.every((x, i) => x === known.key[i])) return known;
    }
    if (this.spent > FRAME_MS && !must) {
      this.late = true;
      return known;
    }
    const began = performance.now();
    const targets = shown.slices && innermost(shown.slices,
      { axis: shown.view.axis, from: stripe.first, to: stripe.first + stripe.bucket * TILE_BUCKETS }, TILE_BUCKETS, colours);
    const look: Look = {
      box, timed, moments: shown.moments, share: shown.share, rings: shown.rings, between: !timed && stripe.bucket === 1 && !shown.share, targets,
    };
    const height = areaHeight(box);
    if (known) this.bytes -= known.bytes;
    const picture: Picture = {
      key, look, areas: canvasOf(TILE_BUCKETS, height, (t) => paintAreas(t, look, columns, colours)), marks: undefined, depth: undefined,
      bytes: 4 * TILE_BUCKETS * height, used: this.frame,
    };
    this.bytes += picture.bytes;
    this.held.set(columns, picture);
    this.spent += performance.now() - began;
    return picture;
  }

  /** Add a canvas to a picture, replacing `old`. */
  private add(picture: Picture, width: number, height: number, paint: (target: Target) => void, old?: OffscreenCanvas): OffscreenCanvas {
    const bytes = 4 * (width * height - (old ? old.width * old.height : 0));
    picture.bytes += bytes;
    this.bytes += bytes;
    return canvasOf(width, height, paint);
  }
}

// ---- drawn directly ----------------------------------------------------------------------------

const dots = new Map<string, CanvasPattern>();

/** A part of a lane that is not loaded yet: dots, which are not used for trace. */
export function drawUnknown(ctx: CanvasRenderingContext2D, box: LaneBox, top: number, x0: number, x1: number, colours: Colours): void {
  if (x1 <= x0) return;
  const { css } = colours.named.muted;
  let pattern = dots.get(css);
  if (!pattern) {
    const canvas = new OffscreenCanvas(4, 8);
    const c = canvas.getContext("2d")!;
    c.fillStyle = css;
    c.fillRect(0, 0, 1, 1);
    c.fillRect(2, 4, 1, 1);
    pattern = ctx.createPattern(canvas, "repeat")!;
    dots.set(css, pattern);
  }
  ctx.save();
  ctx.translate(x0, top + box.fn.y);
  ctx.fillStyle = pattern;
  ctx.fillRect(0, 0, x1 - x0, box.fn.h);
  ctx.restore();
}

/** A part of a lane in which nothing was traced: a line. */
export function drawUntraced(ctx: CanvasRenderingContext2D, box: LaneBox, top: number, x0: number, x1: number, colours: Colours): void {
  ctx.fillStyle = colours.named.density.css;
  if (x1 > x0) ctx.fillRect(x0, top + box.fn.y + (box.fn.h >> 1), x1 - x0, 1);
}
