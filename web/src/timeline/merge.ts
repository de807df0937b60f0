// SPDX-License-Identifier: MIT
// Merges the columns of several lanes into one, for the line of a folded group.
import type { Extent } from "../base/scale.ts";
import { runs, TILE_BUCKETS, type Columns, type Stripe } from "../data/tile.ts";

/** From the first begin to the last end. */
export function together(extents: readonly Extent[]): Extent {
  return { first: Math.min(...extents.map((e) => e.first)), last: Math.max(...extents.map((e) => e.last)) };
}

/**
 * The function with most instructions over all lanes in each bucket; coverage and branches are the
 * mean of all lanes, including idle ones. Breaks are those of single lanes.
 */
export function merged(all: readonly Columns[]): Columns {
  const n = all.length;
  const out = {
    insns: new Float64Array(TILE_BUCKETS), coverage: new Uint8Array(TILE_BUCKETS), fn: new Uint32Array(TILE_BUCKETS),
    share: new Uint8Array(TILE_BUCKETS), fn2: new Uint32Array(TILE_BUCKETS), share2: new Uint8Array(TILE_BUCKETS),
    distinct: new Uint8Array(TILE_BUCKETS), page: new Float64Array(TILE_BUCKETS), privilege: new Uint8Array(4 * TILE_BUCKETS),
    branches: new Uint8Array(TILE_BUCKETS), events: new Uint16Array(TILE_BUCKETS), eventCount: new Uint32Array(TILE_BUCKETS),
    flags: new Uint8Array(TILE_BUCKETS), depthMin: new Uint8Array(TILE_BUCKETS), depthMax: new Uint8Array(TILE_BUCKETS),
    lost: new Uint8Array(TILE_BUCKETS), switchedOut: new Uint8Array(TILE_BUCKETS), breaks: [],
    behindFrom: Math.min(...all.map((c) => c.behindFrom)),
  };
  const weights = new Map<number, number>();
  for (let b = 0; b < TILE_BUCKETS; b++) {
    let [coverage, lost, switchedOut, branches, total] = [0, 0, 0, 0, 0];
    weights.clear();
    const add = (fn: number, weight: number): void => {
      if (fn > 0) weights.set(fn, (weights.get(fn) ?? 0) + weight);
    };
    for (const c of all) {
      out.flags[b]! |= c.flags[b]!;
      out.events[b]! |= c.events[b]!;
      out.eventCount[b]! += c.eventCount[b]!;
      lost += c.lost[b]!;
      switchedOut += c.switchedOut[b]!;
      if (!runs(c, b)) continue;
      const weight = Math.max(1, c.insns[b]!);
      out.insns[b]! += c.insns[b]!;
      total += weight;
      coverage += c.coverage[b]!;
      branches += c.branches[b]!;
      if (out.page[b] === 0) out.page[b] = c.page[b]!;
      add(c.fn[b]!, weight * (c.share[b]! === 0 && c.share2[b]! === 0 ? 255 : c.share[b]!));
      add(c.fn2[b]!, weight * c.share2[b]!);
    }
    out.coverage[b] = Math.min(255, Math.ceil(coverage / n));
    out.lost[b] = lost / n;
    out.switchedOut[b] = switchedOut / n;
    out.branches[b] = branches / n;
    for (const [fn, weight] of weights) {
      const share = Math.min(255, Math.round(weight / total));
      if (share > out.share[b]!) {
        [out.fn2[b], out.share2[b]] = [out.fn[b]!, out.share[b]!];
        [out.fn[b], out.share[b]] = [fn, share];
      } else if (share > out.share2[b]!) {
        [out.fn2[b], out.share2[b]] = [fn, share];
      }
    }
  }
  return out;
}

/** Merged columns, computed once per tile and group. */
export class Merger {
  private readonly made = new WeakMap<Stripe, Map<string, { of: readonly Columns[]; columns: Columns }>>();

  /** `stripes`: of the same tile. Undefined: none of them has such a lane. */
  of(stripes: readonly [Stripe, ...Stripe[]], lanes: ReadonlySet<number>, group: string): Columns | undefined {
    const of = stripes.flatMap((stripe) => [...stripe.lanes].filter(([lane]) => lanes.has(lane)).map(([, columns]) => columns));
    if (of.length === 0) return undefined;
    let groups = this.made.get(stripes[0]);
    if (!groups) this.made.set(stripes[0], groups = new Map());
    const known = groups.get(group);
    if (known && known.of.length === of.length && known.of.every((c, i) => c === of[i])) return known.columns;
    const columns = merged(of);
    groups.set(group, { of, columns });
    return columns;
  }
}
