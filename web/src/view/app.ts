// SPDX-License-Identifier: MIT
// The state of the page and everything that changes it. Drawing code reads it; it uses no DOM
// except the location and the scheduling of frames.
import * as api from "../data/api.ts";
import { Address } from "./address.ts";
import { axisFor, onAxis, rememberAxis } from "./axes.ts";
import { epochOn, exact, near } from "../base/epoch.ts";
import { Chase } from "./chase.ts";
import { fitting, Framing, type Range } from "./framing.ts";
import { Frames } from "../base/frames.ts";
import { Later } from "../base/later.ts";
import { Live, type Connection } from "../data/live.ts";
import { extentOf, hasTime, type Trace } from "../data/model.ts";
import type { Colour, Theme } from "./palette.ts";
import { observe } from "../base/pace.ts";
import { joined, NO_FOLDS } from "../base/folds.ts";
import { centre, clamp, pan, place as placed, span, toUnit, whole, zoom, type Axis, type View } from "../base/scale.ts";
import { Naming } from "./naming.ts";
import { Noting } from "./noting.ts";
import { Finder } from "./find.ts";
import { Locating } from "./locating.ts";
import { measure } from "./measure.ts";
import { Session } from "./session.ts";
import { Swatches } from "./swatches.ts";
import { Tree } from "./tree.ts";
import { decodePlace, emptyPlace, encodePlace, type Beside, type Panel, type Place } from "./url.ts";
import { clockWanted, wantClock } from "./zero.ts";

/** A zoom gesture is over after this time and this number of frames without further events. */
const ZOOM_REST_MS = 80;
const ZOOM_REST_FRAMES = 2;
/** While the page is busy it is drawn at least this often. */
const BUSY_MS = 250;

export class App {
  traces: Trace[] | undefined;
  moreTraces = false; // than the loaded ones
  connection: Connection = "connecting";
  session: Session | undefined;
  trouble = ""; // why the trace in the URL cannot be shown
  panel: Panel = "overview";
  kinds = ""; // kinds of events that are listed, "" for the default
  comparedWith = ""; // "TRACE/STREAM"
  sql = ""; // the question in the panel
  beside: readonly Beside[] = []; // traces shown next to this one
  following: number | undefined;
  /** The cursor was set otherwise than by pointing, and the pointer has rested since: keys zoom at the cursor. */
  led = false;
  clock = clockWanted(); // times of the trace's clock are shown, not since its start
  everyLane = false; // keys go to events, gaps and calls of all lanes, not only of the selected one
  help = false;
  table = false;
  filter = "";
  sort = { key: "", down: false }; // of the list of traces; "": newest first
  searchText = "";
  theme: Theme = "light";
  announced = ""; // for the live region

  private readonly frames = new Frames((pointed) => {
    if (!pointed) this.step();
    this.paint(pointed);
    // Whatever ends without notification, a page that was shown busy is checked again.
    if (this.settled) this.looks.cancel();
    else if (!pointed) this.looks.within(BUSY_MS);
  });
  private readonly looks = new Later(() => this.changed());
  private readonly address = new Address(() => this.session && encodePlace(this.place()), () => this.changed());
  private readonly framing = new Framing();
  private turned = Promise.resolve(); // the axis that is on its way is there
  private measuring: AbortController | undefined;
  private opening: AbortController | undefined;
  readonly finder = new Finder(this);
  readonly tree = new Tree(this);
  readonly noting = new Noting(this);
  readonly naming = new Naming(this);
  private readonly chase = new Chase(this);
  private readonly locating = new Locating(() => this.changed());
  readonly swatches = new Swatches();
  private live: Live | undefined;
  private readonly again = new Later(() => this.changed()); // automatic requests that had to wait

  /** `paint` is called once per frame when something changed; `pointed`: only the pointer moved. */
  constructor(private readonly paint: (pointed: boolean) => void) {}

  /** Also list older traces. */
  showMore(): void {
    this.live?.showMore();
  }

  start(): void {
    observe(() => this.session !== undefined && this.session.trace.state !== "sealed");
    this.live = new Live({
      traces: (traces, more, gone) => this.heard(traces, more, gone),
      shown: () => [this.session?.trace.id ?? "", ...this.beside.map((b) => b.trace), this.comparedWith.split("/")[0]!].filter((id) => id !== ""),
      connection: (state) => {
        if (state === this.connection) return;
        const back = (state === "live" || state === "polling") && this.trouble !== "";
        this.connection = state;
        if (back && !this.session) this.fromUrl();
        this.changed();
      },
    });
    window.addEventListener("hashchange", () => this.fromUrl());
    this.fromUrl();
  }

  changed(): void {
    this.frames.changed();
  }

  hovered(): void {
    this.frames.hovered();
  }

  flush(): void {
    this.frames.flush();
  }

  draw(): void {
    this.changed();
  }

  say(text: string): void {
    this.announced = text;
    this.changed();
  }

  // ---- the URL ---------------------------------------------------------------------------

  private place(): Place {
    const s = this.session;
    if (!s) return emptyPlace();
    const all = whole(s.view.axis, s.extent, s.view.folds);
    const full = Math.abs(s.view.from - all.from) + Math.abs(s.view.to - all.to) < span(all) / 1000;
    const bare = full || (this.following ?? 0) > 0;
    // Positions have the precision that a pixel needs.
    const epoch = epochOn(s.trace, s.view.axis);
    const text = (at: number, step = 1): string => exact(epoch, at, step);
    const step = span(s.view) / 2000;
    return {
      trace: s.trace.id, axis: s.view.axis, usual: false, from: bare ? undefined : text(s.view.from, step),
      to: bare ? undefined : text(s.view.to, step), lane: s.lane !== s.first ? s.stream?.name : undefined,
      at: s.cursor === undefined ? undefined : text(s.cursor),
      select: s.selection && [text(s.selection[0]), text(s.selection[1])], find: s.found?.text ?? "", panel: this.panel,
      arrangement: s.arrangement, kinds: this.kinds, alone: this.swatches.highlight, with: this.comparedWith, sql: this.sql,
      open: s.folds, full: s.trace.streams.filter((_, i) => s.full.has(i)).map((x) => x.name),
      show: [...this.tree.subs], beside: this.beside,
      seams: (s.view.folds ?? []).map((f) => [text(f.from), text(f.to)] as const),
      follow: this.following,
    };
  }

  private toUrl(): void {
    this.address.moved();
  }

  /** What follows is a jump: the browser's Back undoes it. */
  jumps(): void {
    this.address.jumps();
  }

  /** Does the URL match what is shown, with no requests pending? */
  get settled(): boolean {
    const s = this.session;
    return !this.address.pending && !(s && (s.busy || s.turning !== undefined || this.zooming(s)));
  }

  private fromUrl(): void {
    this.address.forget();
    const place = decodePlace(location.hash);
    if (place.trace === undefined) {
      this.close();
    } else if (this.session?.trace.id === place.trace) {
      this.apply(place);
    } else {
      void this.open(place);
    }
    this.changed();
  }

  private apply(place: Place): void {
    const s = this.session;
    if (!s) return;
    const axis = axisFor(s.trace, place.axis);
    s.wanted = place.axis;
    s.turning = undefined;
    s.arrangement = place.arrangement;
    const lane = s.trace.streams.findIndex((stream) => stream.name === place.lane);
    s.lane = lane < 0 ? s.first : lane;
    s.fold(place.open, place.full);
    const extent = extentOf(s.trace, axis);
    const epoch = epochOn(s.trace, axis);
    const [from, to] = [near(epoch, place.from ?? ""), near(epoch, place.to ?? "")];
    const folds = axis === "time" && place.seams.length > 0
      ? joined(NO_FOLDS, place.seams.map(([a, b]) => ({ from: near(epoch, a), to: near(epoch, b) })), 0) : undefined;
    s.view = place.from !== undefined && to > from
      ? clamp({ axis, from, to, folds }, extent) : whole(axis, extent, folds);
    this.panel = place.panel;
    this.kinds = place.kinds;
    if (place.alone !== this.swatches.highlight) this.swatches.setHighlight(place.alone);
    this.comparedWith = place.with;
    this.sql = place.sql;
    this.beside = place.beside;
    this.tree.subs.clear();
    for (const sub of place.show) this.tree.subs.add(sub);
    this.following = s.trace.state === "live" || s.trace.state === "decoding" ? place.follow
      : undefined;
    s.selection = place.select && [near(epoch, place.select[0]), near(epoch, place.select[1])];
    this.moveCursor(place.at === undefined ? undefined : near(epoch, place.at), false);
    if (place.find !== (s.found?.text ?? "")) {
      this.searchText = place.find;
      void this.finder.search(place.find, false);
    }
    if (place.usual) void this.setAxis(axisFor(s.trace, undefined), false);
    if (place.panel === "stats" && place.select) this.measure();
    this.changed();
  }

  // ---- traces ----------------------------------------------------------------------------

  private heard(traces: Trace[], more: boolean, gone: (id: string) => boolean): void {
    this.traces = traces;
    this.moreTraces = more;
    const s = this.session;
    if (!s) {
      this.changed();
      return;
    }
    const now = traces.find((t) => t.id === s.trace.id);
    if (now && (now.createdMs !== s.trace.createdMs || now.epoch !== s.trace.epoch)) {
      // The name now belongs to another capture, or its times have become too large.
      void this.open(this.place());
    } else if (now && (now.revision !== s.trace.revision || s.trace.state === "deleted")) {
      this.grown(s, now);
      this.changed();
    } else if (!now && gone(s.trace.id) && s.trace.state !== "deleted") {
      s.trace = { ...s.trace, state: "deleted" };
      this.following = undefined;
      this.say(`The trace ${s.trace.id} was deleted.`);
    }
  }

  private grown(s: Session, trace: Trace): void {
    const anew = trace.generation !== s.trace.generation;
    const before = s.trace;
    const usual = s.folds === undefined;
    // A view of everything keeps showing everything.
    const atEnd = span(s.view) >= (s.extent.last - s.extent.first) * 0.999
      && this.following === undefined;
    // The list may omit data that only the trace itself has.
    s.trace = before.streams.length > 0 && trace.streams.length === 0
      ? { ...trace, streams: before.streams } : trace;
    if (usual && s.trace.streams.length > before.streams.length) s.fold(undefined, []);
    // Its first times came.
    if (!hasTime(before) && hasTime(s.trace) && s.wanted === undefined && s.cursor === undefined) {
      const axis = axisFor(s.trace, undefined);
      s.view = whole(axis, extentOf(s.trace, axis));
    }
    s.tiles.update(trace.generation, trace.revision);
    if (anew) s.dropDecoded();
    if (atEnd && trace.state === "live") s.view = whole(s.view.axis, s.extent);
    if (anew || before.streams.length === 0) void this.naming.load(s);
    if (this.following !== undefined && trace.state !== "live" && trace.state !== "decoding") {
      this.say("The capture is complete.");
      this.following = undefined;
    }
  }

  private async open(place: Place): Promise<void> {
    this.close();
    const id = place.trace!;
    const controller = new AbortController();
    this.opening = controller;
    try {
      const trace = await api.trace(id, controller.signal);
      if (controller.signal.aborted) return;
      this.clock = clockWanted();
      this.session = new Session(trace, axisFor(trace, place.axis), this);
      this.session.tiles.update(trace.generation, trace.revision);
      this.apply(place);
      void this.naming.load(this.session);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.trouble = error instanceof api.ApiError && error.status === 404
        ? `There is no trace “${id}” on this server.`
        : `The trace “${id}” could not be read: ${(error as Error).message}`;
    }
    this.changed();
  }

  private close(): void {
    this.opening?.abort();
    this.locating.stop();
    this.finder.stop();
    this.measuring?.abort();
    this.session?.tiles.abortAll();
    this.session?.overview.stop();
    this.swatches.forget();
    this.swatches.setHighlight("");
    this.session?.dropDecoded();
    this.session = undefined;
    this.trouble = "";
    this.following = undefined;
    this.searchText = "";
    this.table = false;
  }

  missName(s: Session): void {
    this.naming.miss(s);
  }

  // ---- the view --------------------------------------------------------------------------

  /** One frame of automatic movement. */
  private step(): void {
    const s = this.session;
    if (!s) return;
    const rest = s.overview.want(s.trace);
    if (rest > 0) this.again.within(rest);
    this.chase.step(s);
  }

  setView(view: View, byHand = true): void {
    const s = this.session;
    if (!s) return;
    if (byHand && this.following !== undefined && Math.abs(view.to - s.view.to) > 0) {
      this.following = undefined;
    }
    s.view = clamp({ ...view, folds: s.view.folds }, s.extent);
    this.moved();
  }

  zoomBy(factor: number, anchor?: number): void {
    const s = this.session;
    if (!s) return;
    const at = anchor ?? this.anchor(s);
    const next = zoom(s.view, factor, at, s.extent);
    // With slow frames the next wheel event also arrives late.
    const rest = Math.max(ZOOM_REST_MS, ZOOM_REST_FRAMES * this.frames.ms);
    s.zoomsUntil = performance.now() + rest;
    s.zoomedOn = at;
    if (this.following !== undefined) {
      // Zooming while following keeps following, with the new zoom.
      this.following = 0;
      s.view = { axis: next.axis, from: s.view.to - span(next), to: s.view.to };
      this.toUrl();
      this.changed();
    } else {
      this.setView(next);
    }
    setTimeout(() => this.changed(), rest + 5);
  }

  /** Is a zoom gesture in progress? Finer tiles are not requested during it. */
  zooming(s: Session): boolean {
    return performance.now() < s.zoomsUntil;
  }

  private anchor(s: Session): number {
    const c = s.cursor;
    return c !== undefined && c >= s.view.from && c <= s.view.to ? c : toUnit(s.view, 2, 1);
  }

  panBy(share: number): void {
    const s = this.session;
    if (s) this.setView(pan(s.view, share, s.extent));
  }

  showWhole(): void {
    const s = this.session;
    if (!s) return;
    this.jumps();
    this.setView(whole(s.view.axis, s.extent, s.view.folds));
  }

  goHome(): void {
    const s = this.session;
    if (!s) return;
    this.jumps();
    this.setView(placed(s.view, s.extent.first, 0, s.extent));
  }

  goEnd(): void {
    const s = this.session;
    if (!s) return;
    this.jumps();
    this.setView(placed(s.view, s.extent.last, 0.98, s.extent));
  }

  /** Fit a range into the view. */
  show(range: Range): void {
    const s = this.session;
    if (!s) return;
    this.jumps();
    this.setView(fitting(s, range));
  }

  /** Fit the selection, the call at the cursor or the lane into the view; called again, what is around it. */
  async frame(): Promise<void> {
    const s = this.session;
    if (!s) return;
    const { view } = s;
    const framed = await this.framing.next(s);
    if (this.session !== s || s.view !== view) return;
    if (framed) {
      this.jumps();
      s.depth = framed.depth ?? s.depth;
      this.setView(framed.view);
    }
    this.say(framed ? `${framed.what} fills the view.` : "The whole lane is in view.");
  }

  follow(newest: number | undefined): void {
    const s = this.session;
    if (!s) return;
    this.following = newest;
    if (newest !== undefined) s.view = { ...s.view, folds: undefined };
    this.chase.begin(s);
    this.say(newest === undefined ? "No longer following." : "Following the live edge.");
    this.toUrl();
  }

  /** Switch to the same part of the trace on the other axis, based on the selected lane. */
  async setAxis(axis: Axis, jump = true): Promise<void> {
    const s = this.session;
    if (s?.turning === axis) return this.turned;
    if (!s || s.axis === axis || (axis === "time" && !hasTime(s.trace))) return;
    s.turning = axis === s.view.axis ? undefined : axis;
    if (s.turning === undefined) return; // it was on its way to the other one
    this.turned = this.turn(s, axis, jump);
    await this.turned;
  }

  private async turn(s: Session, axis: Axis, jump: boolean): Promise<void> {
    const place = await onAxis(s, axis);
    if (this.session !== s || s.turning !== axis) return;
    if (jump) this.jumps();
    s.turning = undefined;
    s.view = place.view;
    s.forgetEnds();
    s.selection = place.selection;
    s.measured = undefined;
    s.cursor = undefined;
    this.moveCursor(place.cursor, false);
    this.toUrl();
    this.say(axis === "insn" ? "Axis: instructions." : "Axis: time.");
  }

  /** The user's choice of the axis, also for when the trace is opened again. */
  chooseAxis(axis: Axis): void {
    const s = this.session;
    if (!s || !hasTime(s.trace)) return;
    rememberAxis(s.trace, axis);
    void this.setAxis(axis);
  }

  /** The other one; the place on it may still be looked for when it is called again. */
  toggleAxis(): void {
    if (this.session) this.chooseAxis(this.session.axis === "insn" ? "time" : "insn");
  }

  /** Times of the trace's clock, or since its start. */
  toggleClock(): void {
    this.clock = !this.clock;
    wantClock(this.clock);
    this.say(this.clock ? "Times of the trace's clock." : "Times since the trace's start.");
  }

  // ---- cursor and selection ----------------------------------------------------------------

  selectLane(lane: number): void {
    const s = this.session;
    if (!s || lane < 0 || lane >= s.trace.streams.length) return;
    s.lane = lane;
    s.forgetEnds();
    this.say(`Lane ${s.stream!.name}.`);
    if (s.cursor !== undefined) this.moveCursor(s.cursor, false);
    this.toUrl();
  }

  moveCursor(at: number | undefined, reveal = true): void {
    const s = this.session;
    if (!s) return;
    s.position = undefined;
    s.cursor = at === undefined ? undefined : Math.max(0, Math.floor(at));
    this.led = s.cursor !== undefined;
    if (s.cursor !== undefined) {
      if (reveal && (s.cursor < s.view.from || s.cursor >= s.view.to)) {
        this.setView(centre(s.view, s.cursor, s.extent));
      }
      void this.locating.find(s, s.cursor);
    } else {
      this.locating.stop();
    }
    this.moved();
  }

  select(range: readonly [number, number] | undefined): void {
    const s = this.session;
    if (!s) return;
    s.selection = range;
    this.moved();
  }

  /** Exact statistics of the selection, or of the view, in the selected lane. */
  measure(functions = 50): void {
    const s = this.session;
    if (!s?.stream) return;
    this.measuring?.abort();
    this.measuring = new AbortController();
    this.panel = "stats";
    this.toUrl();
    void measure(s, functions, this.measuring.signal, () => this.changed());
  }

  // ---- going somewhere ---------------------------------------------------------------------

  /** Put the cursor on an instruction of the selected lane, on either axis. */
  async goTo(insn: number, time?: number): Promise<void> {
    const s = this.session;
    const name = s?.stream?.name;
    if (!s || name === undefined) return;
    this.jumps();
    let at = insn;
    if (s.view.axis === "time") {
      at = time ?? (await api.locate(s.trace, name, "insn", insn)).time ?? 0;
    }
    s.chosen = { lane: s.lane, cursor: Math.max(0, Math.floor(at)), insn };
    this.moveCursor(at);
  }

  goToIn(stream: string, insn: number, time?: number): void {
    const s = this.session;
    const lane = s?.laneOf(stream) ?? -1;
    if (!s || lane < 0) return;
    if (lane !== s.lane) {
      s.lane = lane;
      s.forgetEnds();
    }
    void this.goTo(insn, time);
  }

  /** Something that is part of the link has changed. */
  moved(): void {
    this.toUrl();
    this.changed();
  }

  /** Search for a text as if it was typed into the search box. */
  lookFor(text: string): void {
    this.searchText = text;
    void this.finder.search(text);
  }

  /** The whole trace has been counted. */
  counted(s: Session): void {
    if (s !== this.session) return;
    const { stats } = s.overview;
    if (stats) this.swatches.rank(stats.functions.filter((f) => f.pc !== "0x0").map((f) => f.name));
    this.changed();
  }

  swatch(name: string): Colour {
    return this.swatches.of(name, this.theme);
  }

  /** Highlight a single function's colour, "": show all. */
  highlight(name: string): void {
    this.swatches.setHighlight(name);
    this.moved();
  }

  setKinds(kinds: string): void {
    this.kinds = kinds;
    this.moved();
  }

  /** Show a trace next to this one, or change the offset of one that is shown. */
  layBeside(trace: string, offset: bigint | undefined): void {
    const others = this.beside;
    this.beside = others.some((b) => b.trace === trace) ? others.map((b) => (b.trace === trace ? { trace, offset } : b)) : [...others, { trace, offset }];
    this.moved();
  }

  takeAway(trace: string): void {
    this.beside = this.beside.filter((b) => b.trace !== trace);
    this.moved();
  }

  compareWith(other: string): void {
    this.comparedWith = other;
    this.moved();
  }

  setPanel(panel: Panel): void {
    this.panel = panel;
    this.moved();
  }
}
