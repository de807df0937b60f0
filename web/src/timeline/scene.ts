// SPDX-License-Identifier: MIT
// Selects the tiles a picture needs, and substitutes for those not yet loaded: the nearest
// ancestor, covered by any descendants that are in the cache.
import { toUnit, unitsPerPixel, windows, type Extent, type View } from "../base/scale.ts";
import {
  children, levelFor, MAX_LEVEL, parent, STRIPE_LANES, tileRange, tileWidth, type Stripe,
  type TileId,
} from "../data/tile.ts";

export interface Source {
  peek(id: TileId): Stripe | undefined;
}

export interface Need {
  readonly level: number;
  /** Most needed first: from the middle outwards. */
  readonly tiles: readonly TileId[];
}

export function needed(
  view: View, width: number, extent: Extent, base: number, stripes: readonly number[],
): Need {
  const level = levelFor(unitsPerPixel(view, width), base);
  const tiles: TileId[] = [];
  const middle = toUnit(view, 2, 1) / tileWidth(base, level);
  const touched = new Set<number>();
  for (const part of windows(view, width)) {
    const [first, last] = tileRange(part.view, extent, base, level);
    for (let i = first; i <= last; i++) touched.add(i);
  }
  const indices = [...touched].sort((a, b) => Math.abs(a + 0.5 - middle) - Math.abs(b + 0.5 - middle));
  for (const index of indices) {
    for (const stripe of stripes) tiles.push({ axis: view.axis, level, index, stripe });
  }
  return { level, tiles };
}

/** Stripes of the lanes [first, last]. */
export function stripesOf(first: number, last: number): number[] {
  const out: number[] = [];
  for (let s = Math.floor(first / STRIPE_LANES); s <= Math.floor(last / STRIPE_LANES); s++) {
    out.push(s);
  }
  return out;
}

export interface Piece {
  readonly stripe: Stripe;
  readonly from: number; // units
  readonly to: number;
  readonly exact: boolean; // of the requested level
}

/** What to paint for a tile, in painting order. Empty: nothing is known of it yet. */
export function pieces(source: Source, id: TileId, base: number): Piece[] {
  const width = tileWidth(base, id.level);
  const from = id.index * width;
  const exact = source.peek(id);
  return exact ? [{ stripe: exact, from, to: from + width, exact: true }] : standIns(source, id, base);
}

/** What to paint for a tile while it is not loaded. */
export function standIns(source: Source, id: TileId, base: number): Piece[] {
  const width = tileWidth(base, id.level);
  const from = id.index * width;
  const out: Piece[] = [];
  for (let up = 1; id.level + up <= MAX_LEVEL; up++) {
    const stripe = source.peek(parent(id, up));
    if (!stripe) continue;
    out.push({ stripe, from, to: from + width, exact: false });
    break;
  }
  if (id.level > 0) descend(source, id, base, 2, out);
  return out;
}

function descend(source: Source, id: TileId, base: number, levels: number, out: Piece[]): void {
  for (const child of children(id)) {
    const stripe = source.peek(child);
    if (stripe) {
      const width = tileWidth(base, child.level);
      const from = child.index * width;
      out.push({ stripe, from, to: from + width, exact: false });
    } else if (levels > 1 && child.level > 0) {
      descend(source, child, base, levels - 1, out);
    }
  }
}
