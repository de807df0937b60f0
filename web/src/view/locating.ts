// SPDX-License-Identifier: MIT
// Which instruction is at the cursor: asked for when it has come to rest, since quick steps are many.
import * as api from "../data/api.ts";
import { isSoftware } from "../data/model.ts";
import type { Session } from "./session.ts";

const REST_MS = 60;

export class Locating {
  private asking: AbortController | undefined;

  constructor(private readonly changed: () => void) {}

  stop(): void {
    this.asking?.abort();
  }

  async find(s: Session, at: number): Promise<void> {
    this.stop();
    const { stream } = s;
    if (!stream) return;
    const { signal } = this.asking = new AbortController();
    try {
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
      if (signal.aborted) return;
      // Of records the one that follows is meant: that is where it is drawn.
      const position = await (s.view.axis === "time" && !isSoftware(stream.protocol)
        ? api.executed(s.trace, stream.name, stream.insns, at, signal) : api.locate(s.trace, stream.name, s.view.axis, at, signal));
      if (signal.aborted) return;
      s.position = position;
      this.changed();
    } catch {
      // On failure details stay unchanged.
    }
  }
}
