// SPDX-License-Identifier: MIT
// How long each level of privilege ran in all lanes, from the tiles that the overview's picture is made of: nothing more
// is asked for, and times of a long trace are there as soon as it is drawn. A tile has shares in whole 255ths.
import { children, levelFor, MAX_LEVEL, STRIPE_LANES, tileRange, tileWidth, type Columns, type Stripe, type TileId } from "../data/tile.ts";
import { isDerived, isSoftware, privilegeName } from "../data/model.ts";
import type { View } from "../base/scale.ts";
import type { Session } from "./session.ts";

/** Buckets across the trace to begin with, and the levels above that are tried if those tiles are not there. */
const ACROSS = 1024;
const COARSER = 3;

/** A share of anything is told as 1 at least, which stands for half of that on average. */
const share = (told: number): number => (told === 1 ? 0.5 : told) / 255;

/** The tile, or those below that make it up; undefined: a part is not loaded. */
function known(s: Session, id: TileId, base: number, down = 2): Stripe[] | undefined {
  const own = s.tiles.peek(id);
  if (own) return [own];
  if (down === 0 || id.level === 0) return undefined;
  const width = tileWidth(base, id.level - 1);
  const out: Stripe[] = [];
  for (const child of children(id)) {
    if (child.index * width >= s.extent.last || (child.index + 1) * width <= s.extent.first) continue;
    const below = known(s, child, base, down - 1);
    if (!below) return undefined;
    out.push(...below);
  }
  return out;
}

function add(times: Map<string, number>, protocol: string, c: Columns, bucket: number): void {
  c.coverage.forEach((covered, b) => {
    for (let level = 0; level < 4 && covered > 0; level++) {
      const time = bucket * share(covered) * share(c.privilege[4 * b + level]!);
      const name = privilegeName(protocol, level);
      if (time > 0) times.set(name, (times.get(name) ?? 0) + time);
    }
  });
}

/** Time by name of privilege, on the time axis; undefined: not all tiles are loaded. */
export function modeTimes(s: Session): Map<string, number> | undefined {
  const { streams } = s.trace;
  const base = s.trace.tileBase.time;
  const all: View = { axis: "time", from: s.extent.first, to: s.extent.last };
  const finest = levelFor((all.to - all.from) / ACROSS, base);
  for (let level = finest; level <= Math.min(MAX_LEVEL, finest + COARSER); level++) {
    const [first, last] = tileRange(all, s.extent, base, level);
    const stripes: Stripe[] = [];
    let complete = true;
    for (let index = first; index <= last && complete; index++) {
      for (let stripe = 0; stripe * STRIPE_LANES < streams.length && complete; stripe++) {
        const tiles = known(s, { axis: "time", level, index, stripe }, base);
        if (tiles) stripes.push(...tiles);
        complete = tiles !== undefined;
      }
    }
    if (!complete) continue;
    const times = new Map<string, number>();
    for (const tile of stripes) {
      for (const [lane, columns] of tile.lanes) {
        const stream = streams[lane];
        if (stream && !isSoftware(stream.protocol) && !isDerived(stream.name)) add(times, stream.protocol, columns, tile.bucket);
      }
    }
    return times;
  }
  return undefined;
}
