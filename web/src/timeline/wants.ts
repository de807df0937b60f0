// SPDX-License-Identifier: MIT
// What the view needs of the server: tiles, calls, what is below lanes, hits. Said anew for every frame.
import { Later } from "../base/later.ts";
import { pace } from "../base/pace.ts";
import { span } from "../base/scale.ts";
import { children, tileKey, tileWidth, type TileId } from "../data/tile.ts";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { NO_LANE } from "./layout.ts";
import { overview } from "./minimap.ts";
import { needed, pieces, stripesOf } from "./scene.ts";
import type { SubLanes } from "./subs.ts";
import type { Drawn } from "./under.ts";

/** A zoom gesture requests finer tiles at intervals of this many levels. */
const GESTURE_LEVELS = 2;

/** Up to this many lanes without symbols, calls are requested even if no stack is open. */
const BARE_LANES = 64;

export class Wants {
  private asked = -1; // level requested last
  private gestured: readonly TileId[] = []; // tiles requested by the current zoom gesture
  private readonly again = new Later(() => this.app.draw());

  constructor(private readonly app: App, private readonly drawn: Drawn, private readonly subs: SubLanes) {}

  /** Lanes that are partly visible, including those of folded groups. */
  private get lanes(): Set<number> {
    return new Set(this.drawn.inSight.flatMap((b) => (b.lane !== NO_LANE ? [b.lane] : b.node?.folded ? b.node.lanes : [])));
  }

  say(s: Session, depths: readonly number[]): void {
    const base = s.trace.tileBase[s.view.axis];
    const seen = this.lanes;
    const stripes = [...new Set([...seen].map((lane) => stripesOf(lane, lane)[0]!))];
    const need = needed(s.view, this.drawn.plotWidth, s.extent, base, stripes);
    let wanted: TileId[] = [...need.tiles];
    if (this.app.zooming(s)) {
      // Every few levels request the gesture's target; otherwise only what has no stand-in at all.
      if (Math.abs(need.level - this.asked) >= GESTURE_LEVELS) {
        this.asked = need.level;
        const aim = Math.floor(s.zoomedOn / tileWidth(base, need.level));
        this.gestured = need.tiles.filter((id) => id.index === aim);
      }
      const known = need.tiles.filter((id) => s.tiles.peek(id) !== undefined || pieces(s.tiles, id, base).length === 0);
      wanted = [...this.gestured, ...known];
    } else {
      this.asked = need.level;
      this.gestured = [];
    }
    // Closed lanes of code without symbols also use the colours of the calls.
    // On the time axis only those that have it: one other stream would fail the request for all.
    const timed = s.view.axis === "time";
    const called = s.trace.streams.filter((o, i) => (depths[i] ?? 0) > 0 && (!timed || o.hasTime));
    const bare = s.overview.nameless ? called.slice(0, BARE_LANES) : [];
    const open = called.filter((o) => {
      const i = s.laneOf(o.name);
      return seen.has(i) && this.drawn.boxOf(i) && (s.open.has(i) || bare.includes(o));
    }).map((o) => o.name);
    // If the whole trace is in view the overview already has its calls.
    if (bare.length > 0 && span(s.view) < span(overview(s))) s.mapSlices.want(bare.map((o) => o.name), overview(s), s.trace.revision, false);
    const edge = s.trace.state !== "sealed" && s.view.to > s.liveEnd;
    // Tiles show which lanes have calls: they are requested once all tiles are loaded.
    const told = need.tiles.every((id) => pieces(s.tiles, id, base).length > 0);
    s.slices.want(told ? open : [], s.hop?.view ?? s.view, s.trace.revision, edge);
    this.subs.want(s, this.drawn.inSight.map((b) => b.lane), edge);
    const dated = s.trace.streams.filter((o) => !timed || o.hasTime).map((o) => o.name);
    s.found?.list.want(dated.filter((name) => seen.has(s.laneOf(name))), dated, s.view, overview(s), s.trace.revision, edge);
    if (s.hop) {
      const ahead = needed(s.hop.view, this.drawn.plotWidth, s.extent, base, stripes).tiles;
      s.hop.ready = ahead.every((id) => this.upTo(s, id) >= Math.min(s.hop!.edge,
        (id.index + 1) * tileWidth(base, id.level)))
        && open.every((stream) => s.slices.known(stream, s.hop!.view));
      wanted = [...ahead, ...wanted];
      if (s.hop.ready) this.app.draw();
    }
    const all = stripesOf(0, Math.max(0, s.trace.streams.length - 1));
    const map = needed(overview(s), this.drawn.plotWidth / 2, s.extent, base, all);
    s.noteEnd();
    const asked = new Set(wanted.map(tileKey));
    s.tiles.want([...wanted, ...map.tiles.filter((id) => !this.madeUp(s, id, base, asked))]);
    this.noteDrawn(s, need.tiles, base);
    if (s.tiles.waiting) this.again.within(Math.max(100, pace.wait));
  }

  /** Are the tile's children sufficient? Once sealed, or while the view requests them anyway. */
  private madeUp(s: Session, id: TileId, base: number, asked: ReadonlySet<string>): boolean {
    if (id.level === 0) return false;
    const width = tileWidth(base, id.level - 1);
    return children(id).every((child) => child.index * width >= s.extent.last
      || (child.index + 1) * width <= s.extent.first || asked.has(tileKey(child))
      || s.tiles.peek(child)?.sealed === true);
  }

  /** End of the trace when the tile was requested, if it is loaded. */
  private upTo(s: Session, id: TileId): number {
    const stripe = s.tiles.peek(id);
    if (!stripe) return -Infinity;
    return stripe.sealed ? Infinity : s.endAt(s.tiles.revisionOf(id)!) ?? -Infinity;
  }

  /** The newest data drawn: known when its tile was requested, not what was added since. */
  private noteDrawn(s: Session, tiles: readonly TileId[], base: number): void {
    let newest: TileId | undefined;
    let revision: number | undefined;
    for (const id of tiles) {
      if (newest && id.index <= newest.index) continue;
      const known = s.tiles.revisionOf(id);
      if (known === undefined) continue;
      newest = id;
      revision = known;
    }
    if (!newest || revision === undefined) return;
    const edge = (newest.index + 1) * tileWidth(base, newest.level);
    s.drawnTo = Math.min(edge, s.endAt(revision) ?? Infinity);
  }
}
