// SPDX-License-Identifier: MIT
// Fetches stripes and keeps the most recent ones, decoded. Every frame declares what it needs;
// requests nobody needs any more are aborted, and the newest request is sent first.
import { get, limited, tileUrl } from "./api.ts";
import type { Ref } from "../base/epoch.ts";
import { Lru } from "../base/lru.ts";
import { pace } from "../base/pace.ts";
import { decodeStripe, tileKey, type Stripe, type TileId } from "./tile.ts";

export const CAPACITY = 256;
export const IN_FLIGHT = 6;
/** An unsealed tile is requested again this long after the last answer, if its trace has grown. */
const REFRESH_MS = 200;
/** A tile that failed to load is not requested for this time. */
const FAILED_MS = 3000;

interface Entry {
  readonly stripe: Stripe | undefined; // undefined: failed
  readonly etag: string | undefined;
  readonly revision: number; // of the trace when asked
  readonly at: number; // ms
}

export interface Transport {
  (url: string, init: RequestInit): Promise<Response>;
}

export class TileClient {
  private readonly cache = new Lru<string, Entry>(CAPACITY);
  private readonly flying = new Map<string, AbortController>();
  private wanted: TileId[] = [];
  private revision = 0;
  private generation = 0;
  /** Counters for tests and the status line. */
  fetched = 0;

  constructor(
    private readonly trace: Ref,
    private readonly changed: () => void,
    private readonly transport: Transport = get,
    private readonly now: () => number = () => performance.now(),
    private readonly rest: () => number = () => pace.wait,
  ) {}

  /** Set the trace's present revision; another generation invalidates all tiles. */
  update(generation: number, revision: number): void {
    if (generation !== this.generation) {
      this.abortAll();
      this.cache.clear();
    }
    this.generation = generation;
    this.revision = revision;
  }

  /** The stripe as far as it is loaded, of any revision. Counts as a use. */
  peek(id: TileId): Stripe | undefined {
    return this.cache.get(tileKey(id))?.stripe;
  }

  /** The trace's revision when the stripe was last requested; undefined if it is not loaded. */
  revisionOf(id: TileId): number | undefined {
    const entry = this.cache.peek(tileKey(id));
    return entry?.stripe && entry.revision;
  }

  /** Set what this frame needs, most needed first. Replaces the previous list. */
  want(ids: readonly TileId[]): void {
    this.wanted = ids.filter((id) => !this.fresh(id));
    const keys = new Set(ids.map(tileKey));
    for (const [key, controller] of this.flying) {
      if (!keys.has(key)) {
        controller.abort();
        this.flying.delete(key);
      }
    }
    this.pump();
  }

  /** Is something that is not loaded at all pending? Growing tiles are requested continuously. */
  get busy(): boolean {
    return [...this.flying.keys()].some((key) => this.cache.peek(key)?.stripe === undefined);
  }

  /** Something wanted must be requested again soon, though nothing is pending. */
  get waiting(): boolean {
    return this.wanted.length > 0 && this.flying.size === 0;
  }

  abortAll(): void {
    for (const controller of this.flying.values()) controller.abort();
    this.flying.clear();
    this.wanted = [];
  }

  private fresh(id: TileId): boolean {
    const entry = this.cache.peek(tileKey(id));
    if (!entry) return false;
    const age = this.now() - entry.at;
    if (!entry.stripe) return age < FAILED_MS;
    return entry.stripe.sealed || entry.revision === this.revision;
  }

  private pump(): void {
    for (const id of this.wanted) {
      if (this.flying.size >= IN_FLIGHT) return;
      const key = tileKey(id);
      const entry = this.cache.peek(key);
      if (this.flying.has(key) || this.fresh(id)) continue;
      if (entry?.stripe && (this.now() - entry.at < REFRESH_MS || this.rest() > 0)) continue;
      void this.load(id, key, entry);
    }
  }

  private async load(id: TileId, key: string, known: Entry | undefined): Promise<void> {
    const controller = new AbortController();
    this.flying.set(key, controller);
    const { generation, revision } = this;
    this.fetched++;
    try {
      const headers: Record<string, string> = { accept: "application/x-protobuf" };
      if (known?.etag) headers["if-none-match"] = known.etag;
      const reply = await this.transport(tileUrl(this.trace, generation, id),
        { headers, signal: limited(controller.signal) });
      let stripe: Stripe | undefined;
      if (reply.status === 304) {
        stripe = known?.stripe;
      } else if (reply.ok) {
        stripe = decodeStripe(new Uint8Array(await reply.arrayBuffer()), this.trace.epoch);
      }
      if (generation !== this.generation || controller.signal.aborted) return;
      this.cache.set(key, {
        stripe: stripe ?? known?.stripe, revision, at: this.now(),
        etag: reply.headers.get("etag") ?? known?.etag,
      });
    } catch {
      if (controller.signal.aborted || generation !== this.generation) return;
      this.cache.set(key, { stripe: known?.stripe, etag: known?.etag, revision, at: this.now() });
    } finally {
      if (this.flying.get(key) === controller) {
        this.flying.delete(key);
        this.pump();
        this.changed();
      }
    }
  }
}
