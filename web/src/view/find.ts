// SPDX-License-Identifier: MIT
// Search in all lanes: the server searches, the page keeps the hits around the cursor and the total
// number of hits.
import * as api from "../data/api.ts";
import type { App } from "./app.ts";
import { since } from "../base/epoch.ts";
import { LaneData, readHitColumns, type HitColumns } from "../data/lanedata.ts";
import type { Hit, Stream, Trace } from "../data/model.ts";
import { EVENTS } from "../data/overview.ts";
import type { View } from "../base/scale.ts";
import { nearNames, parseSearch } from "./search.ts";
import type { Session } from "./session.ts";
import { meant } from "../base/visible.ts";

/** Number of hits requested after the cursor, and before it. */
const BEHIND = 150;
const BEFORE = 50;
/** Up to this many are fetched completely, so that ticks show all of them. */
const ALL = 2000;

/** A place in the order of all lanes: an instruction of a stream. */
export interface Spot {
  readonly stream: string;
  readonly insn: number;
}

/** Where a query continues: after this many hits at a place, or, backward, before them. */
interface Edge {
  readonly near: Spot;
  readonly skip: number;
}

function edgeOf(found: api.Found | undefined): Edge | undefined {
  const last = found?.more ? found.hits[found.hits.length - 1] : undefined;
  return last && { near: { stream: last.stream, insn: last.insn }, skip: found!.skip };
}

/** Loaded hits of a query: a contiguous section, in the order of all lanes. */
export class Hits {
  what = ""; // the server's interpretation of the query
  hits: readonly Hit[] = [];
  first: number | undefined; // overall number of hits[0]
  total: number | undefined;
  running = false;
  error = "";
  index = -1; // of the current hit
  at = 0; // number of loaded hits before the place that they surround
  private back: Edge | undefined; // set if there are more before the loaded ones
  private ahead: Edge | undefined; // set if there are more after the loaded ones
  private readonly controller = new AbortController();
  /** How many hits there are where, if not all are loaded: in the view, and in the whole trace. */
  readonly columns: LaneData<HitColumns>;
  readonly mapColumns: LaneData<HitColumns>;

  constructor(
    readonly trace: Trace, readonly query: api.Query, private readonly changed: () => void, private readonly where?: api.Where,
  ) {
    const text = query.q ?? (query.call === undefined ? `event:${query.event}` : `call:${query.call}`);
    const more = (): string => `&q=${encodeURIComponent(meant(text))}&columns=4096`;
    this.columns = new LaneData(trace, "hits", more, readHitColumns, changed);
    this.mapColumns = new LaneData(trace, "hits", more, readHitColumns, changed);
  }

  stop(): void {
    this.controller.abort();
    this.clearColumns();
  }

  clearColumns(): void {
    this.columns.clear();
    this.mapColumns.clear();
  }

  /** Are columns being loaded? */
  get busy(): boolean {
    return this.columns.busy || this.mapColumns.busy;
  }

  /** Call each frame with the streams in view and all, the view and the whole trace. `open`: it may have grown. */
  want(seen: readonly string[], all: readonly string[], view: View, map: View, revision: number, open: boolean): void {
    const needed = this.total !== undefined && this.total > this.hits.length;
    this.columns.want(needed ? seen : [], view, revision, open);
    this.mapColumns.want(needed ? all : [], map, revision, open);
  }

  /** Are there more before? */
  get before(): boolean {
    return this.back !== undefined;
  }

  /** Are there more after? */
  get behind(): boolean {
    return this.ahead !== undefined;
  }

  /** Fetch hits around a place; without one, the first. False: it failed, or was aborted. */
  async around(spot: Spot | undefined): Promise<boolean> {
    return this.run(async (ask) => {
      // The order is by time, and across a gap neighbouring instructions may be far apart.
      const [before, here, behind] = await Promise.all([
        spot && ask({ near: spot, backward: true, limit: BEFORE }),
        spot && ask({ at: spot, limit: BEHIND }),
        ask({ near: spot, limit: BEHIND })]);
      this.what = behind.what;
      this.hits = [...(before?.hits ?? [])].reverse().concat(here?.hits ?? [], here?.more ? [] : behind.hits);
      this.at = before?.hits.length ?? 0;
      this.index = -1;
      this.ahead = edgeOf(here) ?? edgeOf(behind);
      this.back = edgeOf(before);
      this.first = undefined;
      if (!this.before) this.first = 0;
      if (!this.before && !this.behind) this.total = this.hits.length;
    });
  }

  /** Count all hits, and number the loaded ones. A small number is fetched completely. */
  async count(): Promise<void> {
    const at = this.hits[0];
    if (!at || (this.total !== undefined && this.first !== undefined)) return;
    await this.run(async (ask) => {
      // The nearest hit before the first loaded one gives its number.
      const got = await ask({ ...(this.back ?? { near: at }), backward: true, limit: 1, count: true });
      if (this.hits[0] !== at) return; // the list has grown meanwhile
      this.total = got.total ?? 0;
      this.first = got.hits.length === 0 ? 0 : (got.before ?? 0) + 1;
      if (this.total > ALL || this.total <= this.hits.length) return;
      const all = await ask({ limit: ALL });
      if (this.hits[0] !== at || all.more) return;
      if (this.index >= 0) this.index += this.first;
      this.hits = all.hits;
      this.first = 0;
      this.back = this.ahead = undefined;
    });
  }

  /** Fetch more at one end. */
  async extend(by: 1 | -1): Promise<boolean> {
    const edge = by > 0 ? this.ahead : this.back;
    if (!edge || this.running) return false;
    return this.run(async (ask) => {
      const got = await ask({ ...edge, backward: by < 0, limit: BEHIND + BEFORE });
      if (by > 0) {
        this.hits = this.hits.concat(got.hits);
        this.ahead = edgeOf(got);
      } else {
        this.hits = [...got.hits].reverse().concat(this.hits);
        this.back = edgeOf(got);
        if (this.first !== undefined) this.first = Math.max(0, this.first - got.hits.length);
        if (this.index >= 0) this.index += got.hits.length;
      }
    });
  }

  private async run(
    body: (ask: (how: api.Around) => Promise<api.Found>) => Promise<void>,
  ): Promise<boolean> {
    this.running = true;
    this.changed();
    try {
      await body((how) => api.find(this.trace, this.query, how, this.where, this.controller.signal));
      return true;
    } catch (error) {
      if (!this.controller.signal.aborted) this.error = (error as Error).message;
      return false;
    } finally {
      this.running = false;
      this.changed();
    }
  }

  /** "12 of 312", as far as known. */
  get position(): string {
    const n = this.total === undefined ? `${this.hits.length}${this.behind || this.before ? "+" : ""}`
      : this.total.toLocaleString("en-US");
    return this.index >= 0 && this.first !== undefined
      ? `${(this.first + this.index + 1).toLocaleString("en-US")} of ${n}` : n;
  }
}

export interface Found {
  readonly text: string; // as entered
  readonly list: Hits;
  offers: readonly string[]; // similar names
}

/** Target of `[`, `]` and similar commands, with its number. */
export interface Step {
  readonly lane: number;
  readonly cursor: number;
  readonly text: string;
  readonly list: Hits;
}

function same(a: Spot | undefined, b: Spot | undefined): boolean {
  return a !== undefined && b !== undefined && a.stream === b.stream && a.insn === b.insn;
}

/** Why a lane has no such time; "": it has. */
export function whyNoTime({ stream }: Session, ns: boolean): string {
  if (!stream?.hasTime) return `${stream?.name ?? "This trace"} has no timestamps: go to an instruction (#1000000).`;
  if (ns === stream.timeIsNs) return "";
  return ns ? "The times of this trace are ticks: its setup has no clock=HZ. Give e.g. 1000 ticks." : "The times of this trace are in ns: give e.g. 12.5 ms.";
}

export class Finder {
  private step: Hits | undefined;

  constructor(private readonly app: App) {}

  stop(): void {
    this.app.session?.found?.list.stop();
    this.step?.stop();
  }

  /** The cursor, or the begin of the view. */
  async spot(s: Session): Promise<Spot | undefined> {
    const { stream } = s;
    if (!stream) return undefined;
    if (s.cursorInsn !== undefined) return { stream: stream.name, insn: s.cursorInsn };
    const at = Math.max(0, Math.floor(s.cursor ?? s.view.from));
    if (s.view.axis === "insn") return { stream: stream.name, insn: Math.min(at, Math.max(0, stream.insns - 1)) };
    const { insn } = await api.locate(s.trace, stream.name, "time", at);
    return { stream: stream.name, insn };
  }

  async search(text: string, go = true): Promise<void> {
    const { app } = this;
    const s = app.session;
    if (!s) return;
    s.found?.list.stop();
    s.found = undefined;
    const parsed = parseSearch(text);
    if (parsed.kind === "goto") {
      if (app.panel === "overview") app.setPanel("insns");
      await app.goTo(Math.min(parsed.insn, Math.max(0, (s.stream?.insns ?? 1) - 1)));
      return;
    }
    if (parsed.kind === "none") {
      app.moved();
      return;
    }
    const timeless = parsed.kind === "time" ? whyNoTime(s, parsed.ns) : "";
    if (parsed.kind === "time" && timeless === "") {
      await this.goToTime(s, s.stream!, since(s.trace.epoch, parsed.at + s.zero));
      return;
    }
    const list = new Hits(s.trace, parsed.kind === "query" ? { q: parsed.text } : {}, () => app.changed());
    const found: Found = { text, list, offers: [] };
    s.found = found;
    if (go) app.setPanel("find");
    if (parsed.kind !== "query") {
      list.error = parsed.kind === "error" ? parsed.text : timeless;
      app.changed();
      return;
    }
    list.running = true;
    const spot = await this.spot(s).catch(() => undefined);
    const ok = await list.around(spot);
    if (s.found !== found) return;
    if (list.hits.length === 0) found.offers = nearNames(text, s.names.filter((n) => n), 5);
    else if (ok && go && !await this.along(list, 1, list.at)) app.say("None after the cursor.");
    else if (ok && !go) list.index = list.hits.findIndex((h) => same(h, spot));
    await list.count();
    if (s.found === found) {
      app.say(list.error !== "" ? list.error : `${list.what || text}: ${list.position}.`);
    }
  }

  /** Put the cursor at a time, on either axis; at the nearest one that the lane has. */
  private async goToTime(s: Session, { name, timeFirst, timeLast, insns }: Stream, wanted: number): Promise<void> {
    const time = Math.min(Math.max(wanted, timeFirst), timeLast);
    this.app.jumps();
    if (s.view.axis === "time") this.app.moveCursor(time);
    else await this.app.goTo(Math.min((await api.locate(s.trace, name, "time", time)).insn, Math.max(0, insns - 1)));
  }

  goToHit(index: number): void {
    const found = this.app.session?.found;
    if (found) this.goToOf(found.list, index);
  }

  /** Move the cursor to a hit of a list, in its lane. */
  goToOf(list: Hits, index: number): void {
    const hit = list.hits[index];
    if (!hit) return;
    list.index = index;
    this.app.goToIn(hit.stream, hit.insn, hit.time);
  }

  /** Go to the next or previous hit of the search, from the cursor. */
  async next(by: 1 | -1): Promise<void> {
    const { app } = this;
    const s = app.session;
    const list = s?.found?.list;
    if (!s || !list || list.running || list.error !== "") return;
    const spot = await this.spot(s);
    if (!await this.from(list, by, spot)) app.say(by > 0 ? "That was the last hit." : "That was the first hit.");
    await list.count();
  }

  /** Go from the cursor to the next or previous hit: in the list, or by a new request. */
  private async from(list: Hits, by: 1 | -1, spot: Spot | undefined): Promise<boolean> {
    if (same(list.hits[list.index], spot)) return this.along(list, by, list.index + by, spot);
    if (!await list.around(spot)) return true; // it was aborted, or reports its failure itself
    const skip = this.app.session?.cursor === undefined ? undefined : spot;
    return this.along(list, by, by > 0 ? list.at : list.at - 1, skip);
  }

  /** Go to hit `i`, or the next one that is not at `skip`. */
  private async along(list: Hits, by: 1 | -1, i: number, skip?: Spot): Promise<boolean> {
    for (;;) {
      for (; i >= 0 && i < list.hits.length; i += by) {
        if (same(list.hits[i], skip)) continue;
        this.goToOf(list, i);
        return true;
      }
      const n = list.hits.length;
      if (!await list.extend(by)) return false;
      i = by > 0 ? n : list.hits.length - n - 1;
    }
  }

  /** Go to the next or previous item of a kind, from the cursor, in its lane; in all, if that is chosen. */
  async jump(kind: "event" | "gap" | "call", by: 1 | -1): Promise<void> {
    const { app } = this;
    const s = app.session;
    if (!s) return;
    this.step?.stop();
    let spot: Spot | undefined;
    let query: api.Query = { event: kind === "gap" ? "gap" : EVENTS };
    try {
      spot = await this.spot(s);
      if (kind === "call") {
        const [row] = spot ? await api.insns(s.trace, spot.stream, spot.insn, 1) : [];
        if (!row || row.fn === "") {
          app.say("The code at the cursor belongs to no known function.");
          return;
        }
        query = { call: row.fn };
      }
    } catch (error) {
      app.say((error as Error).message);
      return;
    }
    const list = new Hits(s.trace, query, () => app.changed(), app.everyLane ? undefined : spot?.stream);
    this.step = list;
    const name = kind === "call" ? `call of ${query.call}` : kind;
    const went = await this.from(list, by, spot);
    if (this.step !== list) return;
    if (!went || list.index < 0) {
      app.say(list.error !== "" ? list.error : `No ${by > 0 ? "further" : "earlier"} ${name}${app.everyLane || s.trace.streams.length < 2 ? "" : " in this lane; J looks in all"}.`);
      return;
    }
    const hit = list.hits[list.index]!;
    s.step = { lane: s.lane, cursor: s.cursor!, text: hit.text || name, list };
    app.changed();
    await list.count();
    if (this.step === list) app.say(`${hit.stream}, ${hit.text || name}: ${list.position}.`);
  }
}
