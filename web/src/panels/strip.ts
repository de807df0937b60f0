// SPDX-License-Identifier: MIT
// Lanes of another trace below the timeline, aligned by time.
import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { App } from "../view/app.ts";
import { short } from "../base/format.ts";
import { extentOf, hasRings, isSoftware, streamExtent, unitName, type Trace } from "../data/model.ts";
import { toPixel, windows, type View } from "../base/scale.ts";
import { Session } from "../view/session.ts";
import { Colours } from "../timeline/colours.ts";
import { drawRuns, forgetFont, runs, type Run } from "../timeline/labels.ts";
import { layoutLanes, type LaneBox } from "../timeline/layout.ts";
import { drawUnknown, drawUntraced, Pictures } from "../timeline/pictures.ts";
import { drawRuler, RULER_HEIGHT } from "../timeline/ruler.ts";
import { needed, pieces, stripesOf } from "../timeline/scene.ts";
import { drawSeams } from "../timeline/seams.ts";
import { tileWidth } from "../data/tile.ts";

const LANES = 8;

export class Strip {
  private session: Session | undefined;
  private colours: Colours | undefined;
  private coloursKey = "";
  private canvas: HTMLCanvasElement | undefined;
  private readonly pictures = new Pictures();
  private readonly observer = new ResizeObserver(() => this.app.changed());

  constructor(private readonly app: App) {}

  /** `shift`: added to a position of the open trace to get one of `trace`, in units of the axis. */
  view(s: Session, trace: Trace, shift: number): TemplateResult {
    const other = this.open(s, trace);
    const { axis, from, to, folds } = s.view;
    other.view = { axis, from: from + shift, to: to + shift, folds: folds?.map((f) => ({ from: f.from + shift, to: f.to + shift })) };
    const streams = trace.streams.slice(0, LANES);
    const { boxes, height } = layoutLanes(streams.map((_, lane) => ({ lane, open: false, full: false, depth: 0 })));
    const cursor = s.cursor === undefined ? undefined : s.cursor + shift;
    // The canvas has its size once it is in the page.
    requestAnimationFrame(() => this.draw(other, boxes, height, cursor));
    return html`<section class="strip" aria-label=${`Lanes of ${trace.id}`}>
      <div class="heads" .style=${`height:${height + RULER_HEIGHT}px`}><div class="name">${trace.id}</div>${boxes.map((box) => {
    const stream = streams[box.lane]!;
    return html`<div class="head small" .style=${`top:${RULER_HEIGHT + box.y}px;height:${box.h}px`}><div class="name">${stream.name}</div>
          <div class="what">${stream.protocol}</div><div class="count">${short(stream.insns)} ${unitName(stream.protocol, stream.insns)}</div></div>`;
  })}</div>
      <div class="plot" .style=${`height:${height + RULER_HEIGHT}px`}><canvas role="img" aria-label=${`${trace.id}, aligned with the lanes above`} ${ref(this.attach)}></canvas></div>
      ${trace.streams.length > LANES ? html`<p class="muted">Only the first ${LANES} of ${trace.streams.length} lanes are shown.</p>` : nothing}</section>`;
  }

  /** Not created per frame: otherwise the element would appear to be removed and added. */
  private readonly attach = (element: Element | undefined): void => {
    this.observer.disconnect();
    this.canvas = element as HTMLCanvasElement | undefined;
    if (this.canvas?.parentElement) this.observer.observe(this.canvas.parentElement);
    if (!this.canvas) this.session?.tiles.abortAll();
  };

  private open(s: Session, trace: Trace): Session {
    if (this.session?.trace.id !== trace.id) {
      this.session?.tiles.abortAll();
      this.session = new Session(trace, s.view.axis, {
        following: undefined, clock: this.app.clock, changed: () => this.app.changed(), counted: () => {}, missName: (other) => this.app.naming.missOf(other),
      });
      void this.app.naming.load(this.session);
    }
    this.session.trace = trace;
    this.session.tiles.update(trace.generation, trace.revision);
    return this.session;
  }

  private draw(s: Session, boxes: readonly LaneBox[], height: number, cursor: number | undefined): void {
    const { canvas } = this;
    const width = Math.floor(canvas?.parentElement?.clientWidth ?? 0);
    const ctx = canvas?.getContext("2d");
    if (!canvas || !ctx || width < 10 || s !== this.session) return;
    const key = `${s.namesVersion} ${this.app.swatches.version} ${this.app.theme}`;
    if (!this.colours || this.coloursKey !== key) {
      this.colours = new Colours(this.app.theme, s.nameOf, (name) => this.app.swatches.beside(name, this.app.theme));
      this.coloursKey = key;
    }
    const { colours } = this;
    const dpr = window.devicePixelRatio || 1;
    const tall = height + RULER_HEIGHT;
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(tall * dpr);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${tall}px`;
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    forgetFont();
    ctx.fillStyle = colours.named.ground.css;
    ctx.fillRect(0, 0, width, tall);
    this.pictures.begin();
    for (const part of windows(s.view, width)) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(part.x, 0, part.width, tall);
      ctx.clip();
      ctx.translate(part.x, 0);
      drawRuler(ctx, s, part.view, part.width, tall, colours);
      for (const box of boxes) this.lane(ctx, s, box, part.width, colours, part.view);
      ctx.restore();
      forgetFont();
    }
    if (this.pictures.late) this.app.changed();
    s.tiles.want(needed(s.view, width, extentOf(s.trace, s.view.axis), s.trace.tileBase[s.view.axis], stripesOf(0, boxes.length - 1)).tiles);
    drawSeams(ctx, s, width, tall, new Map(), colours);
    if (cursor === undefined) return;
    ctx.fillStyle = colours.named.accent.css;
    ctx.fillRect(Math.round(toPixel(s.view, width, cursor)), 0, 1, tall);
  }

  private lane(
    ctx: CanvasRenderingContext2D, s: Session, box: LaneBox, width: number, colours: Colours, view: View,
  ): void {
    const top = RULER_HEIGHT + box.y;
    const stream = s.trace.streams[box.lane]!;
    const base = s.trace.tileBase[view.axis];
    const extent = streamExtent(stream, view.axis);
    const pixels = (from: number, to: number): [number, number] => [
      Math.max(0, Math.round(toPixel(view, width, from))), Math.min(width, Math.round(toPixel(view, width, to)))];
    const all: Run[] = [];
    if (view.axis === "time" && !stream.hasTime) return;
    for (const id of needed(view, width, extentOf(s.trace, view.axis), base, stripesOf(box.lane, box.lane)).tiles) {
      const known = pieces(s.tiles, id, base);
      for (const piece of known) {
        const columns = piece.stripe.lanes.get(box.lane);
        if (!columns) continue;
        this.pictures.draw(ctx, {
          ...piece, view, width, box, top, extent, columns, outline: false, moments: isSoftware(stream.protocol), share: false, rings: hasRings(stream.protocol), slices: undefined,
        }, colours, false);
        if (piece.exact) all.push(...runs(piece.stripe, columns, view, width, toPixel(view, width, extent.last)));
      }
      const wide = tileWidth(base, id.level);
      if (known.length > 0) continue;
      drawUnknown(ctx, box, top, ...pixels(Math.max(extent.first, id.index * wide), Math.min(extent.last, (id.index + 1) * wide)), colours);
    }
    drawUntraced(ctx, box, top, ...pixels(view.from, Math.min(view.to, extent.first)), colours);
    drawUntraced(ctx, box, top, ...pixels(Math.max(view.from, extent.last), view.to), colours);
    drawRuns(ctx, all, top, box, colours, s.nameOf, width, false);
  }
}
