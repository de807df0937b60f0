// SPDX-License-Identifier: MIT
// The server's HTTP interface, only GET and other idempotent requests: one that fails in transport
// is retried once, because a server that drains its connections may drop requests in progress.
import {
  readFound, readFunctions, readInsns, readPosition, readSlices, readStats, readTrace, readTraces,
  thereIsMore, type Found, type FunctionRow, type InsnRow, type Position, type Slices, type Stats, type Trace,
} from "./model.ts";
import { absolute, epochOn, type Ref } from "../base/epoch.ts";
import type { Axis } from "../base/scale.ts";
import type { TileId } from "./tile.ts";
import { STRIPE_LANES, TILE_BUCKETS } from "./tile.ts";
import { meant, visible } from "../base/visible.ts";

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** A request without an answer counts as failed after this time, and is retried. */
const LIMIT_MS = 60000;

export function limited(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]);
}

/** GET, retried once if the transport failed. Aborts are passed on. */
export async function get(path: string, init: RequestInit = {}): Promise<Response> {
  let reply: Response;
  try {
    reply = await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted || (error as Error).name === "AbortError") throw error;
    reply = await fetch(path, init);
  }
  // The login has expired: ask for a token, and return to the current view.
  if (reply.status === 401) location.assign(`login${location.hash}`);
  return reply;
}

/** End the login, if there is one. */
export async function logOut(): Promise<void> {
  await fetch(`${ROOT}/logout`, { method: "POST" }).catch(() => undefined);
  location.assign("login");
}

export type { Found } from "./model.ts";

export async function json(path: string, signal?: AbortSignal): Promise<unknown> {
  const reply = await get(path, { headers: { accept: "application/json" }, ...(signal ? { signal } : {}) });
  if (!reply.ok) throw new ApiError(reply.status, await reason(reply));
  return JSON.parse(visible(await reply.text())) as unknown;
}

export async function text(path: string, signal?: AbortSignal): Promise<string> {
  const reply = await get(path, signal ? { signal } : {});
  if (!reply.ok) throw new ApiError(reply.status, await reason(reply));
  return visible(await reply.text());
}

/** The server's error message, if it sent one. */
export async function reason(reply: Response): Promise<string> {
  const body = (await reply.text().catch(() => "")).trim();
  try {
    const told = JSON.parse(body) as { error?: unknown; message?: unknown };
    const words = told.message ?? told.error;
    if (typeof words === "string") return words;
    if (typeof words === "object" && words !== null && "message" in words) {
      return String((words as { message: unknown }).message);
    }
  } catch {
    // Not JSON.
  }
  return body !== "" && body.length < 200 && !body.startsWith("<") ? body
    : `${reply.status} ${reply.statusText}`.trim();
}

const ROOT = "api/v1";

export function tracePath(trace: string): string {
  return `${ROOT}/traces/${encodeURIComponent(trace)}`;
}

export function streamPath(trace: string, stream: string): string {
  return `${tracePath(trace)}/streams/${encodeURIComponent(stream)}`;
}

/** The newest traces; `more`: there are further ones. */
export async function newest(limit: number): Promise<{ traces: Trace[]; more: boolean }> {
  const told = await json(`${ROOT}/traces?limit=${limit}`);
  return { traces: readTraces(told), more: thereIsMore(told) };
}

export async function trace(id: string, signal?: AbortSignal): Promise<Trace> {
  return readTrace(await json(tracePath(id), signal));
}

export async function functions(id: string, signal?: AbortSignal): Promise<FunctionRow[]> {
  return readFunctions(await json(`${tracePath(id)}/functions`, signal));
}

export async function locate(
  trace: Ref, stream: string, unit: Axis, at: number, signal?: AbortSignal,
): Promise<Position> {
  const where = `unit=${unit}&at=${absolute(epochOn(trace, unit), at)}`;
  return readPosition(
    await json(`${streamPath(trace.id, stream)}/locate?${where}`, signal), trace.epoch);
}

/** What a stream of `insns` instructions executed last at a time: while it waits, the instruction that waits. */
export async function executed(trace: Ref, stream: string, insns: number, time: number, signal?: AbortSignal): Promise<Position> {
  const next = await locate(trace, stream, "time", time, signal);
  return next.insn > 0 && (next.insn >= insns || (next.time ?? 0) > time) ? locate(trace, stream, "insn", next.insn - 1, signal) : next;
}

/** A query: text as entered, a kind of event, or a called function. */
export interface Query {
  readonly q?: string;
  readonly event?: string;
  readonly call?: string;
}

/** Where to look for it: in one stream, or in all. */
export type Where = string | undefined;

export interface Around {
  /** Hits after this instruction of a stream, or before it, nearest first. */
  readonly near?: { readonly stream: string; readonly insn: number } | undefined;
  /** Includes hits at it, except for the first `skip`. */
  readonly skip?: number;
  /** Or hits at an instruction. */
  readonly at?: { readonly stream: string; readonly insn: number };
  readonly backward?: boolean;
  readonly limit: number;
  readonly count?: boolean;
}

/** Search in all streams, in one, or at an instruction of one. */
export async function find(trace: Ref, query: Query, how: Around, where: Where, signal?: AbortSignal): Promise<Found> {
  const params = new URLSearchParams({ limit: String(how.limit) });
  for (const [key, value] of Object.entries(query) as [string, string][]) params.set(key, meant(value));
  if (how.near) {
    if (where === undefined) params.set("near", how.near.stream);
    params.set("at", String(how.near.insn));
    if (how.skip) params.set("skip", String(how.skip));
  }
  if (how.at) {
    params.set("from", String(how.at.insn));
    params.set("to", String(how.at.insn + 1));
    return readFound(await json(`${streamPath(trace.id, how.at.stream)}/find?${params}`, signal), trace.epoch);
  }
  if (how.backward) params.set("backward", "1");
  if (how.count) params.set("count", "1");
  const path = where === undefined ? tracePath(trace.id) : streamPath(trace.id, where);
  return readFound(await json(`${path}/find?${params}`, signal), trace.epoch);
}

export async function insns(
  trace: Ref, stream: string, from: number, count: number, signal?: AbortSignal,
): Promise<InsnRow[]> {
  const where = `from=${from}&count=${count}`;
  return readInsns(
    await json(`${streamPath(trace.id, stream)}/insns?${where}`, signal), trace.epoch);
}

/** The server accepts this many streams in one request. */
const STREAMS_AT_ONCE = 16;

/** What the server tells of each stream, by name: `kind` is slices, log, states or counters. */
export async function ofStreams(
  trace: Ref, kind: string, streams: readonly string[], axis: Axis, from: number, to: number,
  more = "", signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  const epoch = epochOn(trace, axis);
  const last = absolute(epoch, Math.ceil(to)) || 1n;
  const where = `axis=${axis}&from=${absolute(epoch, from)}&to=${last}${more}`;
  const all: Record<string, unknown> = {};
  for (let i = 0; i < streams.length; i += STREAMS_AT_ONCE) {
    const names = streams.slice(i, i + STREAMS_AT_ONCE).map(encodeURIComponent).join(",");
    const told = await json(`${tracePath(trace.id)}/${kind}?streams=${names}&${where}`, signal);
    Object.assign(all, (told as { streams?: object }).streams);
  }
  return all;
}

/** Slices of several streams, by name. */
export async function slices(
  trace: Ref, streams: readonly string[], axis: Axis, from: number, to: number,
  signal?: AbortSignal,
): Promise<Map<string, Slices>> {
  return readSlices(await ofStreams(trace, "slices", streams, axis, from, to, "", signal), epochOn(trace, axis));
}

export async function stats(
  id: string, stream: string, from: number, to: number, functions: number, signal?: AbortSignal,
): Promise<Stats> {
  return readStats(await json(`${streamPath(id, stream)}/stats?from=${from}&to=${to}&functions=${functions}`, signal));
}

/** Statistics of all streams in full. */
export async function traceStats(id: string, signal?: AbortSignal): Promise<Stats> {
  return readStats(await json(`${tracePath(id)}/stats`, signal));
}

export function rangeUrl(
  id: string, stream: string, unit: Axis, from: number, to: number, format: string,
): string {
  return `${streamPath(id, stream)}/range?unit=${unit}&from=${from}&to=${to}&format=${format}`;
}

/** The log of a view, as far as it is listed, for a spreadsheet. */
export function logUrl(trace: Ref, streams: readonly string[], axis: Axis, from: number, to: number): string {
  const epoch = epochOn(trace, axis);
  const where = `axis=${axis}&from=${absolute(epoch, from)}&to=${absolute(epoch, Math.ceil(to)) || 1n}`;
  return `${tracePath(trace.id)}/log?streams=${streams.map(encodeURIComponent).join(",")}&${where}&limit=10000&format=csv`;
}

export function tileUrl(trace: Ref, generation: number, tile: TileId): string {
  const lane = tile.stripe * STRIPE_LANES;
  const before = epochOn(trace, tile.axis) / (BigInt(TILE_BUCKETS) << BigInt(2 * tile.level));
  const index = BigInt(tile.index) + before;
  return `${tracePath(trace.id)}/tiles/${tile.axis}/${tile.level}/${index}`
    + `?lanes=${lane}-${lane + STRIPE_LANES - 1}&gen=${generation}`;
}
