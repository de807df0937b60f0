// SPDX-License-Identifier: MIT
// The traces as they grow: server-sent events, and where those do not come through, polling.
import * as api from "./api.ts";
import { readTraces, type Trace } from "./model.ts";

const POLL_MS = 2000;
const RETRY_MS = 5000;

export type Connection = "connecting" | "live" | "polling" | "lost";

export interface Listener {
  traces(traces: Trace[]): void;
  connection(state: Connection): void;
}

/** Listens until close() is called. */
export class Live {
  private source: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;
  private heard = false;

  constructor(private readonly listener: Listener) {
    this.listen();
  }

  close(): void {
    this.closed = true;
    this.source?.close();
    clearTimeout(this.timer);
  }

  private listen(): void {
    if (this.closed) return;
    this.heard = false;
    const source = new EventSource("api/v1/events");
    this.source = source;
    const take = (event: MessageEvent<string>): void => {
      try {
        this.listener.traces(readTraces(JSON.parse(event.data)));
        this.heard = true;
        this.listener.connection("live");
      } catch {
        // A line that is not ours: the next one may be.
      }
    };
    source.onmessage = take;
    source.addEventListener("traces", take);
    source.onerror = () => {
      // What the stream left out while it was away comes by a poll.
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
      this.listener.traces(await api.traces());
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
