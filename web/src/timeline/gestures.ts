// SPDX-License-Identifier: MIT
// Wheel, drag, click and keys on the timeline.
import type { App } from "../view/app.ts";
import { setFolds } from "../view/folding.ts";
import { match, type Command } from "../view/keys.ts";
import { centre, pan, place, span, toUnit, type View } from "../base/scale.ts";
import { overview } from "./minimap.ts";
import { RULER_HEIGHT } from "./ruler.ts";
import type { Timeline } from "./timeline.ts";

const CLICK_PX = 4;
/** Browsers tell of pinching a touchpad as of a wheel with Ctrl, in small steps: 100 times the logarithm of the zoom. */
const TOUCHPAD_PX = 50;
const TOUCHPAD_RATE = 0.01;
const WHEEL_RATE = 0.0045;
/** Per frame while a key is held: fraction of the view, and zoom. At 60 frames per second. */
const PAN_STEP = 0.025;
const ZOOM_STEP = 1.045;
const FRAME_MS = 1000 / 60;

/** Two fingers on the lanes: how far apart they are, and the middle between them. */
interface Pinch {
  readonly apart: number;
  readonly middle: number;
}

interface Drag {
  readonly kind: "pan" | "select" | "window";
  readonly x: number;
  readonly view: View; // in which it began
  readonly from: number; // the anchor of the selection
  readonly pointer: number;
  moved: boolean;
}

export class Gestures {
  private drag: Drag | undefined;
  private readonly fingers = new Map<number, number>(); // x of each pointer that is down
  private pinch: Pinch | undefined;
  private rests = ""; // where the pointer is
  private readonly held = new Map<string, { command: Command; fast: boolean }>();
  private last = 0;

  constructor(
    private readonly app: App, private readonly timeline: Timeline,
    private readonly plot: HTMLCanvasElement, private readonly map: HTMLCanvasElement, heads: HTMLElement,
  ) {
    for (const element of [plot, map, heads]) element.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    plot.addEventListener("pointerdown", (e) => this.down(e));
    plot.addEventListener("pointermove", (e) => this.move(e));
    plot.addEventListener("pointerup", (e) => this.up(e));
    plot.addEventListener("pointercancel", (e) => {
      this.drag = undefined;
      this.lift(e);
    });
    plot.addEventListener("pointerleave", () => timeline.setPointer(undefined, 0));
    plot.addEventListener("dblclick", (e) => this.twice(e));
    map.addEventListener("pointerdown", (e) => this.mapDown(e));
    map.addEventListener("pointermove", (e) => this.mapMove(e));
    map.addEventListener("pointerup", () => { this.drag = undefined; });
    map.addEventListener("dblclick", () => this.app.showWhole());
    plot.addEventListener("keydown", (e) => this.keyDown(e));
    window.addEventListener("keyup", (e) => { this.held.delete(e.code); });
    window.addEventListener("blur", () => this.held.clear());
  }

  // ---- wheel -------------------------------------------------------------------------------

  private wheel(e: WheelEvent): void {
    if (!this.app.session) return;
    e.preventDefault();
    const unit = e.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18
      : e.deltaMode === WheelEvent.DOM_DELTA_PAGE ? 400 : 1;
    const dx = e.deltaX * unit;
    const dy = e.deltaY * unit;
    const onMap = e.currentTarget === this.map;
    if (e.ctrlKey || e.metaKey) {
      const anchor = e.currentTarget === this.plot ? this.timeline.under.unitAt(e.offsetX) : undefined;
      const rate = Math.abs(dy) < TOUCHPAD_PX ? TOUCHPAD_RATE : WHEEL_RATE;
      this.app.zoomBy(Math.exp(Math.max(-1, Math.min(1, dy * rate))), anchor);
      return;
    }
    const width = Math.max(1, this.timeline.plotWidth);
    if (dx !== 0) this.app.panBy(dx / width);
    if (dy === 0) return;
    // Vertical movement scrolls lanes that do not all fit; otherwise it moves along the axis.
    if (!e.shiftKey && !onMap && this.timeline.scrollBy(dy)) return;
    this.app.panBy(dy / width);
  }

  // ---- pointer -----------------------------------------------------------------------------

  private down(e: PointerEvent): void {
    const s = this.app.session;
    if (!s || e.button !== 0) return;
    this.plot.focus({ preventScroll: true });
    this.plot.setPointerCapture(e.pointerId);
    this.fingers.set(e.pointerId, e.offsetX);
    if (this.fingers.size > 1) {
      this.drag = undefined;
      this.pinch = this.pinched();
      return;
    }
    const select = e.shiftKey || e.offsetY < RULER_HEIGHT;
    this.drag = {
      kind: select ? "select" : "pan", x: e.offsetX, pointer: e.pointerId, moved: false, view: s.view,
      from: select ? this.measured(e) : 0,
    };
  }

  private move(e: PointerEvent): void {
    const s = this.app.session;
    if (!s) return;
    this.timeline.setPointer(e.offsetX, e.offsetY);
    // Browsers also tell of a pointer that rests while the page moves under it.
    const where = `${e.clientX} ${e.clientY}`;
    if (where !== this.rests) this.app.led = false;
    this.rests = where;
    if (this.fingers.has(e.pointerId)) this.fingers.set(e.pointerId, e.offsetX);
    if (this.pinch) {
      this.spread(this.pinch);
      return;
    }
    const d = this.drag;
    if (!d || d.pointer !== e.pointerId) return;
    if (!d.moved && Math.abs(e.offsetX - d.x) < CLICK_PX) return;
    d.moved = true;
    if (d.kind === "pan") {
      // Following or a key may have changed the zoom meanwhile.
      this.app.setView(pan(place(s.view, d.view.from, 0, s.extent), (d.x - e.offsetX) / this.timeline.plotWidth, s.extent));
      this.plot.classList.add("dragging");
    } else if (d.kind === "select") {
      const at = this.measured(e);
      this.app.select(this.range(d.from, at));
    }
  }

  private pinched(): Pinch | undefined {
    const [a, b] = [...this.fingers.values()];
    return a === undefined || b === undefined ? undefined : { apart: Math.max(1, Math.abs(a - b)), middle: (a + b) / 2 };
  }

  /** What is between two fingers stays there. */
  private spread(last: Pinch): void {
    const now = this.pinched();
    if (!now) return;
    this.pinch = now;
    this.app.panBy((last.middle - now.middle) / Math.max(1, this.timeline.plotWidth));
    this.app.zoomBy(last.apart / now.apart, this.timeline.under.unitAt(now.middle));
  }

  /** A finger is gone. True: it was one of two. */
  private lift(e: PointerEvent): boolean {
    this.fingers.delete(e.pointerId);
    const two = this.pinch !== undefined;
    if (this.fingers.size === 0) this.pinch = undefined;
    return two;
  }

  /** Measurements snap to edges, except with Alt. */
  private measured(e: PointerEvent): number {
    return e.altKey ? this.timeline.under.unitAt(e.offsetX) : this.timeline.under.snap(e.offsetX, e.offsetY);
  }

  private range(a: number, b: number): readonly [number, number] {
    const extent = this.app.session!.extent;
    const clip = (v: number): number => Math.min(Math.max(v, extent.first), extent.last);
    const from = Math.floor(clip(Math.min(a, b)));
    return [from, Math.max(from + 1, Math.ceil(clip(Math.max(a, b))))];
  }

  private up(e: PointerEvent): void {
    if (this.lift(e)) return;
    const d = this.drag;
    this.drag = undefined;
    this.plot.classList.remove("dragging");
    const s = this.app.session;
    if (!d || !s) return;
    if (d.moved) {
      if (d.kind === "select") this.app.measure();
      return;
    }
    const seam = this.timeline.seamAt(e.offsetX);
    if (seam) {
      setFolds(this.app, (s.view.folds ?? []).filter((f) => f !== seam.fold));
      return;
    }
    const lane = this.timeline.under.laneAtY(e.offsetY);
    if (lane !== undefined && lane !== s.lane) this.app.selectLane(lane);
    if (e.offsetY >= RULER_HEIGHT && !e.shiftKey) this.app.select(undefined);
    const at = this.timeline.under.unitAt(e.offsetX);
    const extent = s.extent;
    s.depth = this.timeline.under.sliceAt(e.offsetX, e.offsetY)?.slice.depth;
    if (at < extent.first || at >= extent.last) return;
    if (this.app.panel === "overview" && s.cursor === undefined) this.app.setPanel("insns");
    this.app.moveCursor(at);
    this.app.led = false;
  }

  /** Zoom to a slice, otherwise zoom in at the position. */
  private twice(e: MouseEvent): void {
    const s = this.app.session;
    const hit = this.timeline.under.sliceAt(e.offsetX, e.offsetY);
    if (!s || !hit) {
      this.app.zoomBy(0.25, this.timeline.under.unitAt(e.offsetX));
      return;
    }
    this.app.show([hit.slice.from, hit.slice.to]);
  }

  get dragging(): boolean {
    return this.drag?.moved ?? false;
  }

  private mapDown(e: PointerEvent): void {
    const s = this.app.session;
    if (!s || e.button !== 0) return;
    this.map.setPointerCapture(e.pointerId);
    const at = toUnit(overview(s), this.timeline.plotWidth, e.offsetX);
    if (at < s.view.from || at > s.view.to) {
      this.app.jumps();
      this.app.setView(centre(s.view, at, s.extent));
    }
    this.drag = {
      kind: "window", x: e.offsetX, view: s.view, from: 0, pointer: e.pointerId, moved: false,
    };
  }

  private mapMove(e: PointerEvent): void {
    const s = this.app.session;
    const d = this.drag;
    if (!s || !d || d.kind !== "window" || d.pointer !== e.pointerId) return;
    const by = ((e.offsetX - d.x) / this.timeline.plotWidth) * span(overview(s));
    this.app.setView(place(s.view, d.view.from + by, 0, s.extent));
  }

  // ---- keys --------------------------------------------------------------------------------

  keyDown(e: KeyboardEvent): void {
    const binding = match(e);
    if (!binding) return;
    if (binding.held) {
      e.preventDefault();
      if (!this.held.has(e.code)) {
        this.held.set(e.code, { command: binding.command, fast: e.shiftKey });
        this.last = performance.now() - FRAME_MS;
        // At least one step for a short press, larger than a frame's.
        this.act(binding.command, 3, e.shiftKey);
      }
      return;
    }
    if (this.run(binding.command, e.shiftKey)) {
      e.preventDefault();
      e.stopPropagation();
    }
  }

  /** Called once per frame: continues held keys. */
  frame(): void {
    if (this.held.size === 0) return;
    const now = performance.now();
    const steps = Math.min(4, (now - this.last) / FRAME_MS);
    this.last = now;
    for (const { command, fast } of this.held.values()) this.act(command, steps, fast);
    this.app.draw();
  }

  private act(command: Command, steps: number, fast: boolean): void {
    const n = steps * (fast ? 3 : 1);
    const pointer = this.app.led ? undefined : this.timeline.hover?.at;
    if (command === "panLeft") this.app.panBy(-PAN_STEP * n);
    else if (command === "panRight") this.app.panBy(PAN_STEP * n);
    else if (command === "zoomIn") this.app.zoomBy(ZOOM_STEP ** -n, pointer);
    else if (command === "zoomOut") this.app.zoomBy(ZOOM_STEP ** n, pointer);
    this.app.draw();
  }

  /** Commands of the timeline; false for those of the page. */
  private run(command: Command, shift: boolean): boolean {
    const s = this.app.session;
    if (!s) return false;
    switch (command) {
      case "zoomIn": this.app.zoomBy(1 / 1.5); return true;
      case "zoomOut": this.app.zoomBy(1.5); return true;
      case "home": this.app.goHome(); return true;
      case "end": this.app.goEnd(); return true;
      case "whole": this.app.showWhole(); return true;
      case "frame": void this.app.frame(); return true;
      case "foldTime": this.timeline.fold(); return true;
      case "unfoldTime": setFolds(this.app, []); return true;
      case "laneUp": this.lane(-1); return true;
      case "laneDown": this.lane(1); return true;
      case "toggleLane": this.app.tree.toggleLane(s.lane); return true;
      case "stepBack": this.step(-1, shift); return true;
      case "stepForward": this.step(1, shift); return true;
      default: return false;
    }
  }

  private lane(by: 1 | -1): void {
    this.app.tree.nextLane(by);
  }

  /** Move by one instruction, or if those cannot be distinguished by one bucket. */
  private step(by: 1 | -1, extend: boolean): void {
    const s = this.app.session!;
    const at = s.cursor ?? Math.floor(toUnit(s.view, 2, 1));
    const here = this.timeline.under.inspect(s, s.lane, at);
    const to = by > 0 ? here.from + here.width : here.from - here.width;
    this.toCursor(to);
    if (extend) {
      const anchor = s.selection && (s.selection[0] === at || s.selection[1] === at)
        ? (s.selection[0] === at ? s.selection[1] : s.selection[0]) : at;
      this.app.select(this.range(anchor, s.cursor ?? to));
    }
  }

  private toCursor(at: number): void {
    const s = this.app.session!;
    const clipped = Math.min(Math.max(at, s.extent.first), s.extent.last - 1);
    this.app.moveCursor(clipped);
    this.timeline.announce(clipped);
  }
}
