// SPDX-License-Identifier: MIT
// The timeline: minimap, ruler and lanes on three canvases, with lane heads beside them.
import { render } from "lit-html";
import type { App } from "../view/app.ts";
import type { Node } from "../view/arrange.ts";
import { setFolds } from "../view/folding.ts";
import type { Session } from "../view/session.ts";
import { allSoftware, describe, nothingRan, spoken } from "./describe.ts";
import { hasRings, isSoftware, streamExtent } from "../data/model.ts";
import { toPixel, unitsPerPixel, windows, type View, type Window } from "../base/scale.ts";
import { bucketWidth, TILE_BUCKETS, tileWidth, type Break, type Columns, type Stripe, type TileId } from "../data/tile.ts";
import { Colours } from "./colours.ts";
import { Gestures } from "./gestures.ts";
import { Heads } from "./heads.ts";
import { Merger, together } from "./merge.ts";
import { addBreaks, behindOf, cutsOf, drawBehind, drawInsnBreaks, drawTimeBreaks, drawUntold, joinedSpans, untold, type Span } from "./gaps.ts";
import { drawInlined, inlinedRuns, type InlinedRun } from "./inlined.ts";
import { TEXT_CELL, drawInsns, drawNote, drawRuns, forgetFont, mains, runs, type Run } from "./labels.ts";
import { layoutLanes, NO_LANE, placed, type LaneBox } from "./layout.ts";
import {
  drawOverview, MINIMAP_HEIGHT, overview, paintOverview, type Strip,
} from "./minimap.ts";
import { drawOverlay } from "./overlay.ts";
import type { Target } from "./paint.ts";
import { drawUnknown, drawUntraced, Pictures, type Shown } from "./pictures.ts";
import { drawRuler, RULER_HEIGHT } from "./ruler.ts";
import { needed, pieces, standIns, stripesOf, type Piece } from "./scene.ts";
import { drawSeams, foldsOf, seamAt, seamEdges, type Seam } from "./seams.ts";
import { levels, Stacks } from "./stacks.ts";
import { drawTitles, type Curve } from "./sublanes.ts";
import { SubLanes } from "./subs.ts";
import { savePicture, surface } from "./surface.ts";
import { Under, type Drawn, type Each, type Hover } from "./under.ts";
import { ViewBar } from "./viewbar.ts";
import { Wants } from "./wants.ts";

/** Minimum pixels per instruction to draw them individually. */
const CELL = 5;

/** A tile in view, and what there is to paint for it. */
interface Sight {
  readonly id: TileId;
  readonly parts: readonly Piece[];
}

export class Timeline implements Drawn {
  readonly element = document.createElement("div");
  readonly plot = document.createElement("div");
  readonly tips = document.createElement("div");
  hover: Hover | undefined;

  private readonly heads: Heads;
  private readonly silent = document.createElement("p"); // sources that have no lane
  private readonly above = document.createElement("div"); // the bar
  private readonly corner = document.createElement("div");
  private readonly map = surface("minimap");
  private readonly base = surface("base");
  private readonly over = surface("over");
  private readonly pictures = new Pictures();
  private mapImage: ImageData | undefined;
  private mapped: unknown[] = []; // contents of mapImage
  private width = 0;
  private height = 0;
  private part: Window = { view: { axis: "insn", from: 0, to: 1 }, x: 0, width: 0, index: 0 }; // that is being painted
  private readonly sights = new Map<number, readonly Sight[]>(); // of that part, by stripe
  private colours: Colours | undefined;
  private coloursKey: unknown;
  private boxes: LaneBox[] = [];
  private lanesHeight = 0;
  private scroll = 0;
  private depths: number[] = []; // maximum call stack depth seen, by lane
  private sounded = new WeakSet<Columns>();
  private shown: Session | undefined;
  private shownLane = -1;
  readonly inlined = new Map<number, readonly InlinedRun[]>(); // drawn runs, by lane
  private readonly curves = new Map<number, readonly Curve[]>(); // drawn last, by lane
  private readonly gestures: Gestures;
  private readonly subs: SubLanes;
  private readonly wants: Wants;
  readonly under: Under;
  readonly bar: ViewBar;
  private readonly merger = new Merger();
  private readonly stacks = new Stacks();

  constructor(private readonly app: App) {
    this.subs = new SubLanes(app);
    this.wants = new Wants(app, this, this.subs);
    this.under = new Under(app, this);
    this.bar = new ViewBar(app, () => this.focus(), () => this.fold());
    this.heads = new Heads(app, (box) => this.reach(box));
    this.element.className = "timeline";
    this.above.className = "viewbar";
    this.corner.className = "corner";
    this.plot.className = "plot";
    const { canvas } = this.over;
    canvas.tabIndex = 0;
    canvas.id = "timeline";
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "timeline");
    canvas.setAttribute("aria-label", "Timeline of the trace");
    canvas.setAttribute("aria-describedby", "timeline-help");
    this.base.canvas.setAttribute("aria-hidden", "true");
    this.map.canvas.setAttribute("aria-hidden", "true");
    this.plot.append(this.base.canvas, canvas, this.tips);
    this.silent.className = "silent";
    this.silent.hidden = true;
    this.element.append(this.above, this.corner, this.map.canvas, this.heads.element, this.plot, this.silent);
    this.gestures = new Gestures(app, this, canvas, this.map.canvas, this.heads.element);
    new ResizeObserver(([entry]) => {
      if (entry) this.resized(entry.contentRect.width, entry.contentRect.height);
      this.app.draw();
    }).observe(this.plot);
    document.fonts.addEventListener("loadingdone", () => this.app.draw());
  }

  /** A key press for the timeline although the focus is elsewhere. */
  key(e: KeyboardEvent): void {
    this.gestures.keyDown(e);
  }

  announce(at: number): void {
    const s = this.app.session;
    if (s) this.app.say(spoken(describe(s, this.under.inspect(s, s.lane, at))));
  }

  focus(): void {
    this.over.canvas.focus({ preventScroll: true });
  }

  /** The lane or group that keys act on. */
  get node(): string | undefined {
    return this.heads.node;
  }

  /** Is something loaded still to be painted? */
  get late(): boolean {
    return this.pictures.late;
  }

  get dragging(): boolean {
    return this.gestures.dragging;
  }

  get plotWidth(): number {
    return this.width;
  }

  private resized(width: number, height: number): void {
    this.width = Math.floor(width);
    this.height = Math.floor(height);
  }

  /** Adapt the sizes of the canvases to the page. True when something is visible. */
  private measure(): boolean {
    if (this.width === 0) this.resized(this.plot.clientWidth, this.plot.clientHeight);
    if (this.width < 10 || this.height < 10) return false;
    const dpr = window.devicePixelRatio || 1;
    for (const [s, w, h] of [[this.base, this.width, this.height],
      [this.over, this.width, this.height], [this.map, this.width, MINIMAP_HEIGHT]] as const) {
      const [pw, ph] = [Math.round(w * dpr), Math.round(h * dpr)];
      if (s.canvas.width !== pw || s.canvas.height !== ph) {
        s.canvas.width = pw;
        s.canvas.height = ph;
        s.canvas.style.width = `${w}px`;
        s.canvas.style.height = `${h}px`;
        forgetFont();
      }
      s.ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    }
    return true;
  }

  draw(): void {
    const s = this.app.session;
    if (!s || !this.measure()) return;
    if (this.shown !== s) {
      this.shown = s;
      this.shownLane = s.lane;
      this.depths = [];
      this.sounded = new WeakSet();
      this.scroll = 0;
      this.hover = undefined;
    }
    const key = `${s.namesVersion} ${this.app.swatches.version}`;
    if (!this.colours || this.colours.theme !== this.app.theme || this.coloursKey !== key) {
      this.colours = new Colours(this.app.theme, s.nameOf, (name) => this.app.swatch(name));
      this.coloursKey = key;
    }
    this.layout(s);
    s.notes.want(s.trace);
    this.wants.say(s, this.depths);
    this.drawLanes(s, this.colours);
    this.drawMap(s, this.colours);
    this.drawOver(s);
    this.drawHeads(s);
    this.gestures.frame();
  }

  /** What is drawn over the lanes and moves with the pointer. */
  drawOver(s: Session): void {
    if (!this.colours) return;
    const { ctx } = this.over;
    ctx.clearRect(0, 0, this.width, this.height);
    this.refreshHover(s);
    drawOverlay(ctx, s, {
      hoverX: this.hover?.x, scroll: 0, boxes: this.boxes.filter((b) => b.lane !== NO_LANE),
    }, this.width, this.height, this.colours);
  }

  private layout(s: Session): void {
    const shapes = s.rows.map((node) => {
      const { lane, pinned } = node;
      if (lane === undefined) return { lane: NO_LANE, node, pinned, open: false, full: false, depth: 0 };
      return { lane, node, pinned, open: s.open.has(lane), full: s.full.has(lane), depth: this.depths[lane] ?? 0, ...this.subs.shape(s, lane) };
    });
    const { boxes, height } = layoutLanes(shapes, this.height - RULER_HEIGHT);
    this.lanesHeight = height;
    this.scroll = Math.max(0, Math.min(this.scroll, height - (this.height - RULER_HEIGHT)));
    this.boxes = placed(boxes, this.scroll);
    if (s.lane !== this.shownLane) {
      this.shownLane = s.lane;
      if (this.reveal(s.lane)) this.boxes = placed(boxes, this.scroll);
    }
  }

  /** Visible boxes, scrolling ones first: pinned ones are drawn over them. */
  get inSight(): LaneBox[] {
    const seen = this.boxes.filter((b) => b.y + b.h > 0 && b.y < this.height - RULER_HEIGHT);
    return [...seen.filter((b) => !b.pinned), ...seen.filter((b) => b.pinned)];
  }

  boxOf(lane: number): LaneBox | undefined {
    return this.boxes.find((b) => b.lane === lane);
  }

  // ---- tiles -------------------------------------------------------------------------------

  /** Visit everything to paint of a lane, in painting order. */
  visit(s: Session, lane: number, each: Each): void {
    this.visitTiles(s, stripesOf(lane, lane)[0]!, (stripe) => stripe.lanes.get(lane), each);
  }

  /** The same of the window that is being painted. */
  private visitPart(s: Session, lane: number, each: Each): void {
    this.visitTiles(s, stripesOf(lane, lane)[0]!, (stripe) => stripe.lanes.get(lane), each, this.part);
  }

  visitGroup(s: Session, group: Node, each: Each): void {
    this.visitTiles(s, stripesOf(group.lanes[0]!, group.lanes[0]!)[0]!, (stripe) => this.mergedOf(s, group, stripe), each);
  }

  private visitTiles(
    s: Session, at: number, columnsOf: (stripe: Stripe) => Columns | undefined, each: Each,
    part: Pick<Window, "view" | "width"> = { view: s.view, width: this.width },
  ): void {
    for (const { parts } of this.sightsOf(s, at, part)) {
      for (const { stripe, from, to, exact } of parts) {
        const columns = columnsOf(stripe);
        if (columns) each(stripe, columns, from, to, exact);
      }
    }
  }

  // ---- pictures ----------------------------------------------------------------------------

  private drawLanes(s: Session, colours: Colours): void {
    this.inlined.clear();
    this.curves.clear();
    const { ctx } = this.base;
    const height = this.height - RULER_HEIGHT;
    this.pictures.begin();
    ctx.globalAlpha = 1;
    ctx.fillStyle = colours.named.ground.css;
    ctx.fillRect(0, 0, this.width, this.height);
    const visible = this.inSight;
    this.stacks.keep(new Set(visible.map((b) => b.lane)));
    // Pinned lanes are drawn over scrolling ones.
    const pinned = Math.min(height, visible.reduce((n, b) => (b.pinned ? Math.max(n, b.y + b.h) : n), 0));
    for (const box of visible) {
      if (box.lane === s.lane && this.boxes.length > 1) {
        ctx.fillStyle = colours.named.stripe.css;
        const y = box.pinned ? box.y : Math.max(pinned, box.y);
        ctx.fillRect(0, RULER_HEIGHT + y, this.width, Math.max(0, box.y + box.h - y));
      }
    }
    const edges = seamEdges(ctx, s, this.width);
    const each = (x: number, width: number, draw: (box: LaneBox) => void): void => {
      for (const [from, to, first] of [[pinned, height, false], [0, pinned, true]] as const) {
        this.within([x, RULER_HEIGHT + from, width, to - from], () => {
          for (const box of visible) if (box.pinned === first) draw(box);
        });
      }
    };
    for (this.part of windows(s.view, this.width)) {
      const { x, width, view } = this.part;
      this.sights.clear();
      this.within([x, 0, width, this.height], () => {
        drawRuler(ctx, s, view, width, this.height, colours, [edges.get(x) ?? 0, edges.get(x + width) ?? 0]);
      });
      each(x, width, (box) => this.paintBox(s, box, colours));
    }
    drawSeams(ctx, s, this.width, this.height, edges, colours);
    each(0, this.width, (box) => this.noteLane(s, box, colours));
    if (this.pictures.late) this.app.draw();
  }

  /** Draw within a part of the canvas, with x from its left edge. */
  private within([x, y, width, height]: readonly [number, number, number, number], draw: () => void): void {
    const { ctx } = this.base;
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, width, height);
    ctx.clip();
    ctx.translate(x, 0);
    draw();
    ctx.restore();
    forgetFont();
  }

  private paintBox(s: Session, box: LaneBox, colours: Colours): void {
    if (box.lane !== NO_LANE) {
      this.paintLane(s, box, colours);
      this.letterLane(s, box, colours);
    } else if (box.node?.folded) {
      this.paintGroup(s, box, box.node, colours);
    }
  }

  /** The lanes of a folded group as one: the most frequent function, with a height by the number of
   * lanes. */
  private paintGroup(s: Session, box: LaneBox, node: Node, colours: Colours): void {
    const extent = together(node.lanes.map((lane) => streamExtent(s.trace.streams[lane]!, s.view.axis)));
    this.paintTiles(s, stripesOf(node.lanes[0]!, node.lanes[0]!)[0]!, (stripe) => this.mergedOf(s, node, stripe), { box, extent, outline: false, moments: allSoftware(s, node), share: true, rings: false, slices: undefined }, colours);
  }

  private paintTiles(
    s: Session, at: number, columnsOf: (stripe: Stripe) => Columns | undefined,
    how: Pick<Shown, "box" | "extent" | "outline" | "moments" | "share" | "rings" | "slices">, colours: Colours,
  ): void {
    const { ctx } = this.base;
    const { box, extent } = how;
    const top = RULER_HEIGHT + box.y;
    const base = s.trace.tileBase[s.view.axis];
    const draw = ({ stripe, from, to, exact }: Piece, must: boolean): boolean => {
      const columns = columnsOf(stripe);
      return columns === undefined || this.pictures.draw(ctx, { ...how, view: this.part.view, width: this.part.width, top, stripe, columns, from, to, exact }, colours, must);
    };
    for (const { id, parts } of this.sightsOf(s, at, this.part)) {
      const [first] = parts;
      if (first?.exact && draw(first, false)) continue;
      const instead = first?.exact ? standIns(s.tiles, id, base) : parts;
      const any = instead.filter((piece) => draw(piece, !first?.exact)).length > 0;
      if (first?.exact && !any) draw(first, true);
      if (first) continue;
      const wide = tileWidth(base, id.level);
      drawUnknown(ctx, box, top, this.pixel(Math.max(id.index * wide, extent.first)), this.pixel(Math.min((id.index + 1) * wide, extent.last)), colours);
    }
  }

  /** Tiles of a stripe of visible lanes, from left to right; of the window that is being painted, once for all its lanes. */
  private sightsOf(s: Session, at: number, part: Pick<Window, "view" | "width">): readonly Sight[] {
    const known = part === this.part ? this.sights.get(at) : undefined;
    if (known) return known;
    const base = s.trace.tileBase[s.view.axis];
    const { tiles } = needed(part.view, part.width, s.extent, base, [at]);
    const found = [...tiles].sort((a, b) => a.index - b.index).map((id) => ({ id, parts: pieces(s.tiles, id, base) }));
    if (part === this.part) this.sights.set(at, found);
    return found;
  }

  private pixel(at: number): number {
    const { view, width } = this.part;
    return Math.min(width, Math.max(0, Math.round(toPixel(view, width, at))));
  }

  /** The merged columns of a group's lanes. */
  private mergedOf(s: Session, node: Node, stripe: Stripe): Columns | undefined {
    const { axis } = s.view;
    const [, ...others] = new Set(node.lanes.map((lane) => stripesOf(lane, lane)[0]!));
    const level = Math.round(Math.log2(stripe.bucket / bucketWidth(s.trace.tileBase[axis], 0)) / 2);
    const index = Math.round(stripe.first / stripe.bucket / TILE_BUCKETS);
    const beside = others.flatMap((at) => s.tiles.peek({ axis, level, index, stripe: at }) ?? []);
    return this.merger.of([stripe, ...beside], new Set(node.lanes), node.id);
  }

  private paintLane(s: Session, box: LaneBox, colours: Colours): void {
    const stream = s.trace.streams[box.lane]!;
    const extent = streamExtent(stream, s.view.axis);
    const moments = isSoftware(stream.protocol);
    const known = s.slices.get(stream.name, s.view);
    this.paintTiles(s, stripesOf(box.lane, box.lane)[0]!, (stripe) => {
      const columns = stripe.lanes.get(box.lane);
      if (columns) this.sound(box.lane, columns);
      return columns;
    }, {
      box, extent, moments, share: false, rings: hasRings(stream.protocol),
      // If slices are too narrow to be listed, the outline of the depth is shown behind the others.
      outline: box.stack.h > 0 && known?.complete !== true,
      // Code without symbols has the colours of the calls, both in the band and in the stack.
      slices: s.names.length === 0 && !moments ? known?.slices : undefined,
    }, colours);
    if (s.view.axis !== "time" || !stream.hasTime || moments) return;
    // The other lanes begin before it, or continue.
    for (const [from, to] of [[s.extent.first, extent.first], [extent.last, s.extent.last]] as const) {
      if (to > from) drawUntraced(this.base.ctx, box, RULER_HEIGHT + box.y, this.pixel(from), this.pixel(to), colours);
    }
  }

  /** A lane's height may grow while navigating, but never shrink under the pointer. */
  private sound(lane: number, columns: Columns): void {
    if (this.sounded.has(columns)) return;
    this.sounded.add(columns);
    this.deepen(lane, columns.depthMax.reduce((a, b) => Math.max(a, b), 0));
  }

  private deepen(lane: number, deepest: number): void {
    if (deepest <= (this.depths[lane] ?? 0)) return;
    this.depths[lane] = deepest;
    this.app.draw();
  }

  private letterLane(s: Session, box: LaneBox, colours: Colours): void {
    const { ctx } = this.base;
    const { view, width } = this.part;
    const stream = s.trace.streams[box.lane]!;
    const top = RULER_HEIGHT + box.y;
    const end = toPixel(view, width, streamExtent(stream, view.axis).last);
    const all: Run[] = [];
    const most: Run[] = [];
    const breaks: Break[] = [];
    const empty: Span[] = [];
    const behind: Span[] = [];
    this.visitPart(s, box.lane, (stripe, columns, _from, _to, exact) => {
      if (!exact) return;
      behind.push(...behindOf(stripe, columns));
      if (view.axis === "time") empty.push(...untold(stripe, columns));
      all.push(...runs(stripe, columns, view, width, end));
      most.push(...mains(stripe, columns, view, width, end));
      addBreaks(breaks, columns.breaks);
    });
    const cuts = view.axis === "insn" || stream.hasTime ? cutsOf(breaks, view, width) : [];
    const perUnit = 1 / unitsPerPixel(view, width);
    const cells = view.axis === "insn" && perUnit >= CELL;
    const texts = cells && perUnit >= TEXT_CELL && box.density.h < 10;
    if (!texts) drawRuns(ctx, all, top, box, colours, s.nameOf, width, perUnit >= 0.05 && !cells, cuts, cells ? [] : most);
    if (cells) {
      const cache = s.insns(box.lane);
      if (cache && perUnit >= 8) {
        if (perUnit >= TEXT_CELL) cache.want(Math.max(0, view.from), view.to, stream.insns);
        drawInsns(ctx, cache, view, top, box, colours, width, stream.insns);
      }
    }
    const curves = this.subs.draw(ctx, s, box, top, colours, width, cuts, view, (each) => this.visitPart(s, box.lane, each));
    const slices = box.stack.h > 0 ? s.slices.get(stream.name, s.view) : undefined;
    if (slices) {
      this.stacks.draw(ctx, slices.slices, this.part, top, box, colours, cuts);
      this.deepen(box.lane, levels(slices.slices)); // tiles limit the depth to TOLD_DEPTH
    }
    if (slices && cells && perUnit >= 8) {
      const cache = s.insns(box.lane);
      const [from, to] = [Math.max(0, Math.floor(view.from)), Math.min(stream.insns, Math.ceil(view.to))];
      cache?.want(from, to, stream.insns);
      const inlined = cache ? inlinedRuns(cache, slices.slices, from, to) : [];
      this.inlined.set(box.lane, inlined);
      this.deepen(box.lane, drawInlined(ctx, inlined, view, top, box, colours, width));
    }
    const ground = this.groundOf(s, box, colours);
    if (view.axis === "time" && stream.hasTime) {
      if (!isSoftware(stream.protocol)) {
        drawUntold(ctx, joinedSpans(empty, streamExtent(stream, "time")), breaks, view, top, box, colours, width, stream.timeIsNs, ground);
      }
      drawTimeBreaks(ctx, breaks, view, top, box, colours, width, stream.timeIsNs, ground);
    } else if (view.axis === "insn") {
      drawInsnBreaks(ctx, breaks, view, top, box, colours, width, ground);
    }
    if (behind.length > 0) drawBehind(ctx, behind, streamExtent(stream, view.axis).last, view, top, box, colours, width, ground);
    this.curves.set(box.lane, curves);
  }

  /** What is written over windows and gaps: titles of curves, and why a lane is empty. */
  private noteLane(s: Session, box: LaneBox, colours: Colours): void {
    const stream = s.trace.streams[box.lane];
    if (!stream) return;
    const top = RULER_HEIGHT + box.y;
    drawTitles(this.base.ctx, this.curves.get(box.lane) ?? [], box.counters, top, colours);
    const why = s.view.axis === "time" && !stream.hasTime ? "No timestamps: switch to the instruction axis"
      : stream.insns > 0 || isSoftware(stream.protocol) ? "" : nothingRan(s, stream);
    if (why !== "") drawNote(this.base.ctx, why, top, box, colours, this.width, this.groundOf(s, box, colours));
  }

  private groundOf(s: Session, box: LaneBox, { named }: Colours): string {
    return (box.lane === s.lane && this.boxes.length > 1 ? named.stripe : named.ground).css;
  }

  private drawMap(s: Session, colours: Colours): void {
    const { ctx, canvas } = this.map;
    if (!this.mapImage || this.mapImage.width !== canvas.width
      || this.mapImage.height !== canvas.height) {
      this.mapImage = new ImageData(canvas.width, canvas.height);
      this.mapped = [];
    }
    const base = s.trace.tileBase[s.view.axis];
    const view: View = overview(s);
    const strips: Strip[] = [];
    const made: unknown[] = [colours, view.from, view.to, s.order];
    const all = stripesOf(0, Math.max(0, s.trace.streams.length - 1));
    for (const id of needed(view, this.width / 2, s.extent, base, all).tiles) {
      for (const { stripe } of pieces(s.tiles, id, base)) {
        for (const [lane, columns] of stripe.lanes) {
          if (lane >= s.trace.streams.length) continue;
          const { name } = s.trace.streams[lane]!;
          const { slices } = (s.names.length === 0 && (s.mapSlices.get(name, view) ?? s.slices.get(name, view))) || {};
          strips.push({ lane, stripe, columns, slices });
          made.push(columns, slices);
          this.sound(lane, columns);
        }
      }
    }
    // It seldom changes: it is painted only when its inputs have changed.
    if (made.length !== this.mapped.length || made.some((m, i) => m !== this.mapped[i])) {
      this.mapped = made;
      const target: Target = {
        pixels: new Uint32Array(this.mapImage.data.buffer), width: canvas.width,
        height: canvas.height,
      };
      target.pixels.fill(colours.named.ground.rgba);
      paintOverview(target, s, strips, colours, window.devicePixelRatio || 1);
    }
    ctx.putImageData(this.mapImage, 0, 0);
    drawOverview(ctx, s, this.width, colours);
  }

  private drawHeads(s: Session): void {
    this.heads.draw(s, this.boxes, this.depths);
    const silent = s.overview.silent(s.trace);
    this.silent.hidden = silent.length === 0;
    this.silent.textContent = silent.length === 0 ? "" : `No trace came from ${silent.map((x) => `${x.device} (${x.name})`).join(", ")}`;
    render(this.bar.view(s), this.above);
    render(this.subs.buttons(), this.corner);
  }

  /** Save the visible part as a PNG file: the overview, the ruler, the lanes and their names. */
  save(s: Session | undefined): void {
    if (!s || !this.colours) return;
    const names = this.inSight.map((box) => ({ name: box.node?.name ?? "", y: MINIMAP_HEIGHT + RULER_HEIGHT + box.y }));
    savePicture(s.trace.id, this.heads.element.offsetWidth, this.width, names, [
      { canvas: this.map.canvas, y: 0 }, { canvas: this.base.canvas, y: MINIMAP_HEIGHT }, { canvas: this.over.canvas, y: MINIMAP_HEIGHT },
    ], MINIMAP_HEIGHT + this.height, this.colours);
  }

  // ---- what is where -----------------------------------------------------------------------

  /** A wheel turn over the lanes; false if there is nothing to scroll. */
  scrollBy(pixels: number): boolean {
    const most = this.lanesHeight - (this.height - RULER_HEIGHT);
    if (most <= 0) return false;
    this.scroll = Math.max(0, Math.min(most, this.scroll + pixels));
    this.app.draw();
    return true;
  }

  /** Scroll until the lane is visible. False: it was. */
  reveal(lane: number): boolean {
    const box = this.boxOf(lane);
    if (!box || box.pinned) return false;
    const before = this.scroll;
    this.reach(box);
    return this.scroll !== before;
  }

  /** Scroll a line into view, unless it is pinned. */
  private reach(box: LaneBox): void {
    const room = this.height - RULER_HEIGHT;
    const above = this.boxes.reduce((n, b) => (b.pinned ? n + b.h : n), 0);
    if (box.pinned) return;
    this.scroll += box.y < above ? box.y - above : box.y + box.h > room ? Math.min(box.y - above, box.y + box.h - room) : 0;
    this.app.draw();
  }

  setPointer(x: number | undefined, y: number): void {
    const s = this.app.session;
    if (!s) return;
    this.hover = x === undefined ? undefined : this.under.look(s, x, y);
    this.app.hovered();
  }

  // ---- empty time --------------------------------------------------------------------------

  /** Fold the empty time in view away. */
  fold(): void {
    const s = this.app.session;
    if (s && s.view.axis === "time") setFolds(this.app, foldsOf(s, this.width));
  }

  seamAt(x: number): Seam | undefined {
    const s = this.app.session;
    return s && seamAt(s.view, this.width, x);
  }

  private refreshHover(s: Session): void {
    if (this.hover) this.hover = this.under.look(s, this.hover.x, this.hover.y);
  }
}
