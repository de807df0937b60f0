// SPDX-License-Identifier: MIT
// Updates of growing traces: server-sent events, or polling where those do not get through.
import * as api from "./api.ts";
import { readTraces, thereIsMore, type Trace } from "./model.ts";
import { pace } from "../base/pace.ts";
import { visible } from "../base/visible.ts";

const POLL_MS = 2000;
const RETRY_MS = 5000;
const HIDDEN_MS = 10000;
/** Minimum interval of updates. */
const EVERY_MS = 300;
/** Limit for news of many traces: shown ones are still requested. */
const MOST_SPENT = 10000;
/** Number of traces listed, the newest, and added with each request for more. */
const PAGE = 500;

export type Connection = "connecting" | "live" | "polling" | "lost";

export interface Listener {
  /** The newest traces and those that are shown; `more`: there are others. `gone`: is one known to
   * be deleted? */
  traces(traces: Trace[], more: boolean, gone: (id: string) => boolean): void;
  /** Traces that are shown, whether or not they are among the newest. */
  shown(): readonly string[];
  connection(state: Connection): void;
}

/** Apply changes to the traces, newest first. */
export function changed(known: readonly Trace[], told: unknown): Trace[] {
  const { gone } = told as { gone?: unknown };
  const rows = readTraces(told);
  const lost = new Set(Array.isArray(gone) ? gone as unknown[] : []);
  const kept = known.filter((t) => !lost.has(t.id)).map((t) => rows.find((row) => row.id === t.id) ?? t);
  return [...rows.filter((row) => !kept.includes(row)), ...kept].sort((a, b) => b.createdMs - a.createdMs);
}

/** Listens while the page is visible. */
export class Live {
  private source: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hiding: ReturnType<typeof setTimeout> | undefined;
  private closed = false; // the page is not visible
  private heard = false;
  private known: readonly Trace[] = [];
  private more = false; // than the known ones
  private older: readonly Trace[] = []; // shown traces that are not among the known ones
  private limit = PAGE;
  private publishing = false;
  private again = false;

  constructor(private readonly listener: Listener) {
    this.listen();
    // Over HTTP/1.1 a browser has six connections to a server, shared by all its tabs: invisible
    // tabs leave theirs to the others.
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.hiding);
      if (document.hidden) this.hiding = setTimeout(() => this.pause(), HIDDEN_MS);
      else if (this.closed) this.resume();
    });
  }

  private pause(): void {
    this.closed = true;
    this.stop();
  }

  private stop(): void {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.timer);
  }

  /** Also list older traces. */
  showMore(): void {
    this.limit += PAGE;
    this.stop();
    this.listen();
  }

  private take(traces: readonly Trace[], more: boolean): void {
    this.known = traces;
    this.more = more;
    void this.publish();
  }

  /** Shown traces are requested by name if they are not among the newest. */
  private async publish(): Promise<void> {
    this.again = this.publishing;
    if (this.publishing) return;
    this.publishing = true;
    do {
      this.again = false;
      const missing = this.more ? this.listener.shown().filter((id) => !this.known.some((t) => t.id === id)) : [];
      const found = await Promise.all(missing.map((id) => this.one(id)));
      this.older = found.filter((t) => t !== undefined);
      const older = this.older.filter((o) => !this.known.some((t) => t.id === o.id));
      this.listener.traces([...this.known, ...older], this.more,
        (id) => !this.more || (missing.includes(id) && found[missing.indexOf(id)] === undefined));
    } while (this.again);
    this.publishing = false;
  }

  private async one(id: string): Promise<Trace | undefined> {
    try {
      return await api.trace(id);
    } catch (error) {
      return error instanceof api.ApiError && error.status === 404 ? undefined : this.older.find((t) => t.id === id);
    }
  }

  private resume(): void {
    this.closed = false;
    this.listen();
  }

  private listen(): void {
    if (this.closed) return;
    this.heard = false;
    const source = new EventSource(`api/v1/events?changes=1&every=${EVERY_MS}&limit=${this.limit}`);
    this.source = source;
    const take = (event: MessageEvent<string>): void => {
      try {
        pace.spend(Math.min(event.data.length, MOST_SPENT));
        const told = JSON.parse(visible(event.data)) as unknown;
        this.take(event.type === "changes" ? changed(this.known, told) : readTraces(told), thereIsMore(told));
        this.heard = true;
        this.listener.connection("live");
      } catch {
        // An unknown line: the next one may be valid.
      }
    };
    source.onmessage = take;
    source.addEventListener("traces", take);
    source.addEventListener("changes", take);
    source.onerror = () => {
      // Changes missed while disconnected are fetched by polling.
      source.close();
      if (this.source !== source) return;
      this.source = undefined;
      this.listener.connection(this.heard ? "connecting" : "polling");
      void this.poll(Date.now() + (this.heard ? 0 : RETRY_MS));
    };
  }

  private async poll(until: number): Promise<void> {
    if (this.closed) return;
    try {
      const { traces, more } = await api.newest(this.limit);
      this.take(traces, more);
      this.listener.connection("polling");
    } catch {
      this.listener.connection("lost");
    }
    this.timer = setTimeout(() => {
      if (Date.now() >= until) this.listen();
      else void this.poll(until);
    }, POLL_MS);
  }
}
