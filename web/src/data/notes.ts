// SPDX-License-Identifier: MIT
// Notes and bookmarks of a trace, as the server keeps them.
import type * as Json from "../../gen/answers.ts";
import * as api from "./api.ts";
import { since } from "../base/epoch.ts";
import type { Trace } from "./model.ts";
import type { Axis } from "../base/scale.ts";
import { meant } from "../base/visible.ts";

export interface Note {
  readonly id: number;
  readonly stream: string;
  readonly at: number; // instructions [at, to]
  readonly to: number;
  readonly time: number | undefined; // of both, relative to the trace's epoch
  readonly timeTo: number | undefined;
  readonly text: string; // "": a bookmark
  readonly writtenMs: number; // since 1970
}

export function readNote(told: unknown, epoch: bigint): Note {
  const o = told as Json.Note;
  return {
    id: Number(o.id), stream: String(o.stream ?? ""), at: Number(o.at), to: Number(o.to),
    time: o.time === undefined ? undefined : since(epoch, o.time),
    timeTo: o.time_to === undefined ? undefined : since(epoch, o.time_to),
    text: String(o.text ?? ""), writtenMs: Number(o.updated_ns ?? 0) / 1e6,
  };
}

/** Position of a note on an axis; undefined: none. */
export function noteSpan(note: Note, axis: Axis): readonly [number, number] | undefined {
  if (axis === "insn") return [note.at, note.to];
  return note.time === undefined ? undefined : [note.time, note.timeTo ?? note.time];
}

export class Notes {
  list: readonly Note[] = [];
  trouble = "";
  private known = 0; // the trace's `notes` when they were fetched
  private fetching = false;

  constructor(private readonly changed: () => void) {}

  /** Ensure that they are up to date with the trace. No request for a trace without notes. */
  want(trace: Trace): void {
    if (this.fetching || trace.notes === this.known) return;
    this.fetching = true;
    const { notes } = trace;
    this.refresh(trace).then(() => { this.known = notes; }, () => { this.known = notes; }).finally(() => {
      this.fetching = false;
      this.changed();
    });
  }

  private async refresh(trace: Trace): Promise<void> {
    const told = await api.json(`${api.tracePath(trace.id)}/notes`);
    this.list = (Array.isArray(told) ? told : []).map((n) => readNote(n, trace.epoch)).sort((a, b) => a.at - b.at || a.id - b.id);
  }

  /** Write a note; `id` 0 creates one. Returns the written note, or undefined and sets the
   * error. */
  async put(trace: Trace, note: { id: number; stream: string; at: number; to: number }, text: string): Promise<Note | undefined> {
    const where = `id=${note.id}&stream=${encodeURIComponent(note.stream)}&at=${note.at}&to=${note.to}`;
    const reply = await this.send(`${api.tracePath(trace.id)}/notes?${where}`, { method: "POST", body: meant(text) });
    if (!reply) return undefined;
    const written = readNote(await reply.json(), trace.epoch);
    await this.refresh(trace);
    this.changed();
    return written;
  }

  async remove(trace: Trace, id: number): Promise<void> {
    if (await this.send(`${api.tracePath(trace.id)}/notes/${id}`, { method: "DELETE" })) await this.refresh(trace);
    this.changed();
  }

  private async send(path: string, init: RequestInit): Promise<Response | undefined> {
    this.trouble = "";
    try {
      const reply = await fetch(path, init);
      if (reply.ok) return reply;
      this.trouble = reply.status === 403 || reply.status === 401
        ? "Your token does not allow writing notes here: that needs the role “push”." : await api.reason(reply);
    } catch (error) {
      this.trouble = (error as Error).message;
    }
    this.changed();
    return undefined;
  }
}
