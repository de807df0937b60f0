// SPDX-License-Identifier: MIT
// Positions and contents of tiles. A tile is TILE_BUCKETS buckets wide; a bucket of level L is
// 2^base * 4^L units of the axis wide; a stripe holds one tile for each of STRIPE_LANES
// neighbouring lanes.
import { since } from "../base/epoch.ts";
import type { Axis, Extent, View } from "../base/scale.ts";
import { fields, unpack } from "./wire.ts";

export const TILE_BUCKETS = 512;
export const STRIPE_LANES = 16;
export const MAX_LEVEL = 27;

export interface TileId {
  readonly axis: Axis;
  readonly level: number;
  readonly index: number;
  readonly stripe: number; // of lanes
}

export function tileKey(id: TileId): string {
  return `${id.axis}/${id.level}/${id.index}/${id.stripe}`;
}

export function bucketWidth(base: number, level: number): number {
  return 2 ** (base + 2 * level);
}

export function tileWidth(base: number, level: number): number {
  return TILE_BUCKETS * bucketWidth(base, level);
}

/** The finest level whose buckets are at least a pixel wide. */
export function levelFor(unitsPerPixel: number, base: number): number {
  const level = Math.ceil((Math.log2(unitsPerPixel) - base) / 2 - 1e-9);
  return Math.min(Math.max(level, 0), MAX_LEVEL);
}

/**
 * Indices of the tiles that a view touches, within the extent: [first, last], none if last < first.
 */
export function tileRange(view: View, extent: Extent, base: number, level: number): [number, number] {
  const width = tileWidth(base, level);
  const from = Math.max(view.from, extent.first);
  const to = Math.min(view.to, extent.last);
  if (!(to > from)) return [0, -1];
  return [Math.floor(from / width), Math.ceil(to / width) - 1];
}

/** The tile `up` levels above that contains this one. */
export function parent(id: TileId, up = 1): TileId {
  return { ...id, level: id.level + up, index: Math.floor(id.index / 4 ** up) };
}

/** The four tiles one level below that make up this one. */
export function children(id: TileId): TileId[] {
  return [0, 1, 2, 3].map((i) => ({ ...id, level: id.level - 1, index: id.index * 4 + i }));
}

export const FLAG = { gap: 1, overflow: 2, bad: 4, noImage: 8, off: 16, open: 32, unsynced: 64, switchedOut: 128 };
/** Trace is missing or cannot be followed. */
export const FLAG_LOST = FLAG.gap | FLAG.overflow | FLAG.bad | FLAG.noImage | FLAG.off | FLAG.unsynced | FLAG.switchedOut;
export const EVENT = {
  exception: 1, exceptionReturn: 2, hardware: 4, software: 8, mode: 16, context: 32, traceOn: 64,
  note: 128,
};

/** Maximum depth of call stacks in tiles. */
export const TOLD_DEPTH = 255;

/** A lane's columns, one element per bucket. */
export interface Columns {
  readonly insns: Float64Array;
  readonly coverage: Uint8Array;
  readonly fn: Uint32Array; // id + 1, 0 none
  readonly share: Uint8Array;
  readonly fn2: Uint32Array;
  readonly share2: Uint8Array;
  readonly distinct: Uint8Array;
  readonly page: Float64Array;
  readonly privilege: Uint8Array; // 4 per bucket
  readonly branches: Uint8Array;
  readonly events: Uint16Array;
  readonly eventCount: Uint32Array;
  readonly flags: Uint8Array;
  readonly depthMin: Uint8Array;
  readonly depthMax: Uint8Array;
  readonly lost: Uint8Array; // share of the bucket's time, on the time axis
  readonly switchedOut: Uint8Array; // likewise: the lane's thread did not run
  readonly breaks: readonly Break[];
  readonly behindFrom: number; // on the axis: what is there is still being indexed; Infinity: nothing
}

/** Trace is missing before an instruction, at an unknown time between two times. */
export interface Break {
  readonly position: number;
  readonly from: number; // of the time axis; from = to: not known
  readonly to: number;
  readonly flags: number;
}

/** Is the lane executing in a bucket, even if the instruction began before? */
export function runs(c: Columns, b: number): boolean {
  return c.insns[b]! > 0 || c.coverage[b]! > 0;
}

/** Was tracing off, or the thread switched out, so that nothing was lost? */
export function isOff(flags: number): boolean {
  const why = flags & FLAG_LOST & ~FLAG.gap;
  return why !== 0 && (why & ~(FLAG.off | FLAG.switchedOut)) === 0;
}

/** In words, where nothing ran and nothing was lost. */
export function offText(flags: number): string {
  return flags & FLAG.switchedOut ? "switched out" : "not traced";
}

export interface Stripe {
  readonly first: number; // left edge in units
  readonly bucket: number; // units
  readonly sealed: boolean;
  readonly lanes: Map<number, Columns>;
}

/**
 * Decode a Tile message (proto/tracelake/v1/ranges.proto has its fields). Throws on invalid bytes. Missing or short
 * columns read as zero. `epoch` is that of times.
 */
export function decodeStripe(bytes: Uint8Array, epoch = 0n): Stripe {
  let [axis, bucket, first, sealed] = [0n, 0n, 0n, 0n];
  const lanes = new Map<number, Columns>();
  fields(bytes, (field, value, inner) => {
    if (field === 1) axis = value;
    else if (field === 4) bucket = value;
    else if (field === 5) first = value;
    else if (field === 6) sealed = value;
    else if (field === 8) lanes.set(...lane(inner, epoch, axis === TIME ? epoch : 0n));
  });
  return { first: since(axis === TIME ? epoch : 0n, first), bucket: Math.max(1, Number(bucket)), sealed: sealed !== 0n, lanes };
}

/** tracelake.v1.Unit. */
const TIME = 1n;

const words = (): Uint32Array => new Uint32Array(TILE_BUCKETS);
const wide = (): Float64Array => new Float64Array(TILE_BUCKETS);

function lane(bytes: Uint8Array, epoch: bigint, origin: bigint): [number, Columns] {
  let index = 0;
  let behindFrom = Infinity;
  const blocks: Uint8Array[] = []; // by field
  const breaks: Break[] = [];
  fields(bytes, (field, value, inner) => {
    if (field === 1) index = Number(value);
    else if (field === 18) breaks.push(readBreak(inner, epoch));
    else if (field === 19) behindFrom = since(origin, value);
    else blocks[field] = inner;
  });
  const packed = (field: number): Uint8Array => blocks[field] ?? new Uint8Array(0);
  const column = (field: number, each = 1): Uint8Array => {
    const out = new Uint8Array(TILE_BUCKETS * each);
    out.set(packed(field).subarray(0, out.length));
    return out;
  };
  const insns = unpack(packed(2), wide());
  return [index, {
    insns,
    coverage: packed(3).length > 0 || !insns.some((n) => n > 0) ? column(3) : Uint8Array.from(insns, (n) => (n > 0 ? 255 : 0)),
    fn: unpack(packed(4), words()), share: column(5),
    fn2: unpack(packed(6), words()), share2: column(7),
    distinct: column(8),
    page: unpack(packed(9), wide()),
    privilege: column(10, 4),
    branches: column(11),
    events: unpack(packed(12), new Uint16Array(TILE_BUCKETS)),
    eventCount: unpack(packed(13), words()),
    flags: column(14),
    depthMin: column(15),
    depthMax: column(16),
    lost: column(17),
    switchedOut: column(20),
    breaks, behindFrom,
  }];
}

function readBreak(bytes: Uint8Array, epoch: bigint): Break {
  const values = [0n, 0n, 0n, 0n, 0n]; // by field
  fields(bytes, (field, value) => { values[field] = value; });
  return { position: Number(values[1]), from: since(epoch, values[2]), to: since(epoch, values[3]), flags: Number(values[4]) };
}
