// SPDX-License-Identifier: MIT
// Fetches stripes and keeps the last ones, decoded. Every frame says what it wants; what nobody
// wants any more is aborted, the newest wish goes first.
import { get, limited, tileUrl } from "./api.ts";
import type { Ref } from "./epoch.ts";
import { Lru } from "./lru.ts";
import { pace } from "./pace.ts";
import { decodeStripe, tileKey, type Stripe, type TileId } from "./tile.ts";

export const CAPACITY = 256;
export const IN_FLIGHT = 6;
/** An open tile is asked for again this long after the last answer, if its trace has grown. */
const REFRESH_MS = 200;
/** A tile that could not be had is left alone for so long. */
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
  /** Counted for tests and the status line. */
  fetched = 0;

  constructor(
    private readonly trace: Ref,
    private readonly changed: () => void,
    private readonly transport: Transport = get,
    private readonly now: () => number = () => performance.now(),
    private readonly rest: () => number = () => pace.wait,
  ) {}

  /** The trace is now at this revision; another generation makes all tiles void. */
  update(generation: number, revision: number): void {
    if (generation !== this.generation) {
      this.abortAll();
      this.cache.clear();
    }
    this.generation = generation;
    this.revision = revision;
  }

  /** The stripe as far as it is here, of whatever revision. Counts as a use. */
  peek(id: TileId): Stripe | undefined {
    return this.cache.get(tileKey(id))?.stripe;
  }

  /** The trace's revision when the stripe was last asked for; undefined if it is not here. */
  revisionOf(id: TileId): number | undefined {
    const entry = this.cache.peek(tileKey(id));
    return entry?.stripe && entry.revision;
  }

  /** What this frame needs, the most needed first. Replaces what was wanted before. */
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

  /** Is something under way that is not here at all? What only grew is asked for again and again. */
  get busy(): boolean {
    return [...this.flying.keys()].some((key) => this.cache.peek(key)?.stripe === undefined);
  }

  /** Something wanted will have to be asked for again soon, though nothing is under way. */
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
