// SPDX-License-Identifier: MIT
// Notes and bookmarks at places of the trace: written, and gone to.
import { noteSpan, type Note } from "../data/notes.ts";
import type { App } from "./app.ts";

export class Noting {
  wished = 0; // number of requests to write a note

  constructor(private readonly app: App) {}

  /** Write a note at the cursor, in the panel. */
  write(): void {
    this.wished++;
    this.app.setPanel("notes");
  }

  /** Write a note without text at the cursor. */
  async bookmark(): Promise<void> {
    const s = this.app.session;
    const stream = s?.stream?.name;
    const at = s?.cursorInsn;
    if (!s || stream === undefined || at === undefined) return;
    const written = await s.notes.put(s.trace, { id: 0, stream, at, to: at }, "");
    this.app.say(written ? "Bookmark saved." : s.notes.trouble);
    if (!written) this.app.setPanel("notes");
  }

  goTo(note: Note): void {
    const s = this.app.session;
    const lane = s?.trace.streams.findIndex((x) => x.name === note.stream) ?? -1;
    if (!s || lane < 0) return;
    this.app.selectLane(lane);
    void this.app.goTo(note.at, note.time);
  }

  /** Go to the next or previous note, in all lanes. */
  next(by: 1 | -1): void {
    const s = this.app.session;
    if (!s) return;
    const at = s.cursor ?? -Infinity;
    const placed = s.notes.list.map((note) => ({ note, x: noteSpan(note, s.view.axis)?.[0] }))
      .filter((n): n is { note: Note; x: number } => n.x !== undefined).sort((a, b) => a.x - b.x);
    const next = by > 0 ? placed.find((n) => n.x > at) : placed.filter((n) => n.x < at).at(-1);
    if (next) this.goTo(next.note);
    else this.app.say(placed.length === 0 ? "There are no notes." : "There are no more notes in this direction.");
  }
}
