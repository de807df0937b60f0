// SPDX-License-Identifier: MIT
// Positions and contents of tiles. A tile is TILE_BUCKETS buckets wide; a bucket of level L is
// 2^base * 4^L units of the axis wide; a stripe holds one tile for each of STRIPE_LANES
// neighbouring lanes.
import { fromBinary } from "@bufbuild/protobuf";
import { TileSchema, Unit, type Lane } from "../gen/tracelake/v1/ranges_pb";
import { since } from "./epoch.ts";
import type { Axis, Extent, View } from "./scale.ts";

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

export const FLAG = { gap: 1, overflow: 2, bad: 4, noImage: 8, off: 16, open: 32, unsynced: 64 };
/** Trace is missing or cannot be followed. */
export const FLAG_LOST = FLAG.gap | FLAG.overflow | FLAG.bad | FLAG.noImage | FLAG.off | FLAG.unsynced;
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
  readonly breaks: readonly Break[];
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

/** Was tracing off, so that nothing was lost? */
export function isOff(flags: number): boolean {
  return (flags & FLAG_LOST & ~FLAG.gap) === FLAG.off;
}

export interface Stripe {
  readonly first: number; // left edge in units
  readonly bucket: number; // units
  readonly sealed: boolean;
  readonly lanes: Map<number, Columns>;
}

/**
 * Decode a Tile message. Throws on invalid bytes. Missing or short columns read as zero. `epoch` is
 * that of times.
 */
export function decodeStripe(bytes: Uint8Array, epoch = 0n): Stripe {
  const tile = fromBinary(TileSchema, bytes);
  const lanes = new Map<number, Columns>();
  for (const lane of tile.lanes) lanes.set(lane.lane, columns(lane, epoch));
  return {
    first: since(tile.axis === Unit.TIME ? epoch : 0n, tile.first), bucket: Math.max(1, Number(tile.bucket)), sealed: tile.sealed, lanes,
  };
}

function columns(lane: Lane, epoch: bigint): Columns {
  const insns = bigColumn(lane.insns);
  return {
    insns,
    coverage: lane.coverage.length > 0 ? byteColumn(lane.coverage, 1) : insns.some((n) => n > 0)
      ? Uint8Array.from(insns, (n) => (n > 0 ? 255 : 0)) : new Uint8Array(TILE_BUCKETS),
    fn: wordColumn(lane.function),
    share: byteColumn(lane.share, 1),
    fn2: wordColumn(lane.function2),
    share2: byteColumn(lane.share2, 1),
    distinct: byteColumn(lane.distinct, 1),
    page: bigColumn(lane.page),
    privilege: byteColumn(lane.privilege, 4),
    branches: byteColumn(lane.branches, 1),
    events: Uint16Array.from(wordColumn(lane.eventMask)),
    eventCount: wordColumn(lane.eventCount),
    flags: byteColumn(lane.flags, 1),
    depthMin: byteColumn(lane.depthMin, 1),
    depthMax: byteColumn(lane.depthMax, 1),
    lost: byteColumn(lane.lost, 1),
    breaks: lane.breaks.map((b) => ({
      position: Number(b.position), flags: b.flags,
      from: since(epoch, b.begin), to: since(epoch, b.to),
    })),
  };
}

function byteColumn(from: Uint8Array, each: number): Uint8Array {
  const out = new Uint8Array(TILE_BUCKETS * each);
  out.set(from.subarray(0, out.length));
  return out;
}

function wordColumn(from: number[]): Uint32Array {
  const out = new Uint32Array(TILE_BUCKETS);
  const n = Math.min(from.length, TILE_BUCKETS);
  for (let i = 0; i < n; i++) out[i] = from[i]!;
  return out;
}

function bigColumn(from: bigint[]): Float64Array {
  const out = new Float64Array(TILE_BUCKETS);
  const n = Math.min(from.length, TILE_BUCKETS);
  for (let i = 0; i < n; i++) out[i] = Number(from[i]!);
  return out;
}
