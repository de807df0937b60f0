// SPDX-License-Identifier: MIT
// Everything that belongs to the open trace: view, selection, search results, and the data fetched
// so far.
import { AS_THEY_COME, pathsOf, treeOf, visible, type Arrangement, type Node } from "./arrange.ts";
import type { Found, Step } from "./find.ts";
import { Overview } from "../data/overview.ts";
import { InsnCache } from "../data/insns.ts";
import { extentOf, ofLinux, streamExtent, type Position, type Stats, type Stream, type Trace } from "../data/model.ts";
import { LaneData, readCounters, readLog, readStates, type Counters, type Log, type States } from "../data/lanedata.ts";
import { Notes } from "../data/notes.ts";
import { whole, type Axis, type Extent, type View } from "../base/scale.ts";
import { SliceCache } from "../data/slices.ts";
import { TileClient } from "../data/tiles.ts";
import type { OwnTimes, Range } from "../data/timing.ts";
import { zeroOf } from "./zero.ts";

/** What a session needs from the page. */
export interface Host {
  /** Set while the live edge is followed. */
  readonly following: number | undefined;
  readonly clock: boolean; // times of the trace's clock are shown
  changed(): void;
  counted(session: Session): void;
  missName(session: Session): void;
}

/** Up to this many lanes all call stacks are open initially. */
const FEW_LANES = 6;
/**
 * Minimum number of records requested on each side of the view: a line of text often has one per
 * letter.
 */
const LINE_REACH = 256;

export interface Measured {
  readonly lane: number;
  readonly from: number; // instructions
  readonly to: number;
  stats: Stats | undefined;
  times: OwnTimes | undefined; // on the time axis
  readonly span: Range | undefined; // of time, there
  error: string;
}

export class Session {
  readonly tiles: TileClient;
  readonly slices: SliceCache;
  readonly mapSlices: SliceCache; // of the whole trace: gives code without symbols its colours in the overview
  readonly overview: Overview;
  readonly notes: Notes;
  readonly log: LaneData<Log>;
  readonly states: LaneData<States>;
  readonly counters: LaneData<Counters>;
  private readonly insnCaches = new Map<string, InsnCache>();
  names: string[] = []; // of functions by id
  namesVersion = 0;
  addresses: string[] = [];
  namesRevision = -1; // revision of the trace when the names were requested
  view: View;
  wanted: Axis | undefined; // by the link
  turning: Axis | undefined; // the axis that will be shown, once the place on it is known
  lane = 0;
  cursor: number | undefined; // in units of the view's axis
  chosen: { readonly lane: number; readonly cursor: number; readonly insn: number } | undefined;
  depth: number | undefined; // selected call at the cursor; undefined: the innermost
  position: Position | undefined; // of the cursor, once the server has returned it
  selection: readonly [number, number] | undefined; // in units of the axis
  found: Found | undefined;
  step: Step | undefined;
  measured: Measured | undefined;
  readonly open = new Set<number>(); // lanes whose call stack is shown
  readonly full = new Set<number>(); // lanes whose call stack is shown with all its rows
  /** How far the lanes can be drawn now: the edge to follow. */
  drawnTo = Infinity;
  /** Target of following once the tiles there are `ready`. */
  hop: { view: View; edge: number; since: number; ready: boolean } | undefined;
  private readonly ends = new Map<number, number>(); // end of the axis at a revision
  zoomsUntil = -Infinity; // ms: a zoom gesture is in progress
  zoomedOn = 0; // its fixed point
  private tellNamed: () => void = () => {};
  /** Resolved once a tile has referred to a function. */
  readonly named = new Promise<void>((done) => { this.tellNamed = done; });

  constructor(public trace: Trace, axis: Axis, private readonly app: Host) {
    this.tiles = new TileClient(trace, () => app.changed());
    this.slices = new SliceCache(trace, () => app.changed());
    this.mapSlices = new SliceCache(trace, () => app.changed());
    this.overview = new Overview(trace, () => app.counted(this));
    const changed = (): void => app.changed();
    this.notes = new Notes(changed);
    this.log = new LaneData(trace, "log", () => `&limit=1000${app.following === undefined ? "" : "&last=1"}`, (told) => readLog(told, trace.epoch), changed, LINE_REACH);
    this.states = new LaneData(trace, "states", () => "&columns=2048", (told, epoch) => readStates(told, epoch, ofLinux(trace)), changed);
    this.counters = new LaneData(trace, "counters", () => "&columns=1024", readCounters, changed);
    this.view = whole(axis, extentOf(trace, axis));
    this.fold(undefined, []);
  }

  /** Open these lanes' call stacks, by name; undefined: the default of fold(). */
  fold(open: readonly string[] | undefined, full: readonly string[]): void {
    this.open.clear();
    this.full.clear();
    this.trace.streams.forEach((stream, i) => {
      if (open ? open.includes(stream.name) : this.openByItself) this.open.add(i);
      if (full.includes(stream.name)) this.full.add(i);
    });
  }

  private get openByItself(): boolean {
    return this.trace.streams.length <= FEW_LANES;
  }

  /** Names of the open lanes, undefined if they are the default of fold(). */
  get folds(): string[] | undefined {
    const { streams } = this.trace;
    return this.open.size === (this.openByItself ? streams.length : 0) ? undefined
      : streams.filter((_, i) => this.open.has(i)).map((s) => s.name);
  }

  arrangement: Arrangement = AS_THEY_COME;

  /** Display name of a stream: a label of its trace. */
  called = (name: string): string => this.trace.labels[`lane.${name}`] ?? name;

  private made: {
    readonly of: readonly unknown[]; readonly tree: readonly Node[]; readonly rows: readonly Node[]; readonly order: readonly number[];
  } | undefined;

  private get arranged(): NonNullable<typeof this.made> {
    const { streams, labels, rig } = this.trace;
    const of = [streams, labels, rig, this.arrangement];
    if (!this.made || of.some((x, i) => x !== this.made!.of[i])) {
      const paths = this.paths();
      const told = { rig: rig || "All lanes", called: this.called, path: (name: string) => paths.get(name) ?? [] };
      const tree = treeOf(streams, this.arrangement, told);
      const order = treeOf(streams, this.arrangement, told, true).flatMap((node) => node.lanes);
      this.made = { of, tree, rows: visible(tree), order };
    }
    return this.made;
  }

  /** The groups that contain lanes, as set by users or derived from the trace. */
  paths(): Map<string, readonly string[]> {
    return pathsOf(this.trace.streams, (name) => this.trace.labels[`core.${name}`],
      ({ name, core }) => ({ pt: "processors", thread: "threads", event: "events" })[name.split(".")[0]!] ?? core);
  }

  /** Nodes of the tree that have a line, from top to bottom. */
  get rows(): readonly Node[] {
    return this.arranged.rows;
  }

  /** All lanes, hidden ones too, from top to bottom. */
  get order(): readonly number[] {
    return this.arranged.order;
  }

  /** The lane that is selected if the user has selected none. */
  get first(): number {
    return this.lanes[0] ?? 0;
  }

  /** The node of a lane or a group, undefined if it is hidden. */
  node(id: string): Node | undefined {
    const find = (nodes: readonly Node[]): Node | undefined => {
      for (const node of nodes) {
        const found = node.id === id ? node : find(node.children);
        if (found) return found;
      }
      return undefined;
    };
    return find(this.arranged.tree);
  }

  /** Lanes that have a line, from top to bottom. */
  get lanes(): number[] {
    return this.rows.flatMap((node) => (node.lane === undefined ? [] : [node.lane]));
  }

  /** The axis that is shown, or soon will be. */
  get axis(): Axis {
    return this.turning ?? this.view.axis;
  }

  get extent(): Extent {
    return extentOf(this.trace, this.view.axis);
  }

  /** Where times that are shown count from. */
  get zero(): bigint {
    return zeroOf(this.trace, this.app.clock);
  }

  get stream(): Stream | undefined {
    return this.trace.streams[this.lane];
  }

  insns(lane: number): InsnCache | undefined {
    const stream = this.trace.streams[lane];
    if (!stream) return undefined;
    let cache = this.insnCaches.get(stream.name);
    if (!cache) {
      cache = new InsnCache(this.trace, stream.name, () => this.app.changed());
      this.insnCaches.set(stream.name, cache);
    }
    return cache;
  }

  /** The cursor as an instruction of its lane, if known. */
  get cursorInsn(): number | undefined {
    if (this.cursor === undefined) return undefined;
    if (this.view.axis === "insn") return Math.floor(this.cursor);
    // Several instructions may have the same time: prefer the one that was selected.
    const at = this.chosen;
    return at && at.lane === this.lane && at.cursor === this.cursor ? at.insn : this.position?.insn;
  }

  laneOf(stream: string): number {
    return this.trace.streams.findIndex((s) => s.name === stream);
  }

  /** The edge to follow is that of the selected lane: others may be ahead or behind. */
  get liveEnd(): number {
    const own = this.stream && streamExtent(this.stream, this.view.axis);
    return own && own.last > own.first ? own.last : this.extent.last;
  }

  /** Record the trace's end at its present revision, for tiles requested now. */
  noteEnd(): void {
    this.ends.set(this.trace.revision, this.liveEnd);
    if (this.ends.size > 100) this.ends.delete(this.ends.keys().next().value!);
  }

  forgetEnds(): void {
    this.ends.clear();
    this.drawnTo = Infinity;
  }

  endAt(revision: number): number | undefined {
    return this.ends.get(revision);
  }

  nameOf = (id: number): string => {
    const name = this.names[id];
    if (name !== undefined) return name;
    this.tellNamed();
    this.app.missName(this);
    return `function ${id}`;
  };

  /** Is something in view being loaded? */
  get busy(): boolean {
    // A growing trace is requested continuously.
    if (this.trace.state === "live") return this.tiles.busy;
    return this.tiles.busy || this.slices.busy || this.mapSlices.busy || this.log.busy || this.states.busy || this.counters.busy
      || this.found?.list.busy === true || [...this.insnCaches.values()].some((c) => c.busy);
  }

  dropDecoded(): void {
    for (const cache of this.insnCaches.values()) cache.clear();
    this.found?.list.clearColumns();
    for (const data of [this.slices, this.mapSlices, this.log, this.states, this.counters]) data.clear();
  }
}
