// SPDX-License-Identifier: MIT
// Names of functions, which are fetched apart from the tiles that refer to them.
import * as api from "../data/api.ts";
import { Later } from "../base/later.ts";
import { pace } from "../base/pace.ts";
import type { App } from "./app.ts";
import type { Session } from "./session.ts";

/** A growing trace's names are fetched at most this often. */
const NAMES_MS = 1000;

export class Naming {
  private askedAt = -Infinity;
  private readonly again: Later;

  constructor(private readonly app: App) {
    this.again = new Later(() => app.changed());
  }

  /** A tile refers to a function that was not there when the names were fetched. */
  miss(s: Session): void {
    if (s !== this.app.session || s.namesRevision === s.trace.revision) return;
    const rest = Math.max(pace.wait, this.askedAt + NAMES_MS - performance.now());
    if (rest > 0) this.again.within(rest);
    else void this.load(s);
  }

  /** The same for a trace shown next to the open one. */
  missOf(s: Session): void {
    if (s.namesRevision !== s.trace.revision) void this.load(s);
  }

  /** Names are fetched separately from tiles; a live trace adds new ones over time. */
  async load(s: Session): Promise<void> {
    this.askedAt = performance.now();
    s.namesRevision = s.trace.revision;
    if (s === this.app.session) {
      // Without names there is no table to fetch. Traces shown next to it have no overview.
      await Promise.race([s.overview.first, s.named]);
      if (s.overview.nameless || s !== this.app.session) return;
    }
    try {
      const rows = await api.functions(s.trace.id);
      const names: string[] = [];
      const addresses: string[] = [];
      for (const row of rows) {
        names[row.id] = row.name;
        addresses[row.id] = row.pc;
      }
      s.names = names;
      s.namesVersion++;
      s.addresses = addresses;
      this.app.changed();
    } catch {
      // Numbers are shown instead of names until the next attempt.
    }
  }
}
