// SPDX-License-Identifier: MIT
// The newest lines of a growing lane while its edge is followed, as flow text with functions. What is left out is said:
// a fast lane executes more than anybody reads.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { rangeUrl, text } from "../data/api.ts";
import type { App } from "../view/app.ts";
import { grouped } from "../base/format.ts";
import { Later } from "../base/later.ts";
import { pace } from "../base/pace.ts";
import type { Session } from "../view/session.ts";
import { Filter } from "./filter.ts";

/** At most so many instructions at a time, and with a filter, which leaves most of them out. */
const MOST = 500;
const MOST_FILTERED = 5000;
const PAUSE_MS = 500;
const KEPT = 400;

/** What to ask for next, and how many instructions are left out before it. */
export function nextRange(upTo: number, edge: number, most: number): { from: number; to: number; skipped: number } {
  const from = Math.max(upTo, edge - most);
  return { from, to: edge, skipped: from - upTo };
}

export class TailPanel {
  private readonly filter = new Filter(() => this.app.changed());
  private of = ""; // lane and filter that the lines are of
  private upTo = -1; // -1: nothing was asked for
  private lines: string[] = [];
  private error = "";
  private asking: AbortController | undefined;
  private readonly again = new Later(() => this.app.changed());

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    this.want(s);
    return html`${this.filter.view()}${this.error !== "" ? html`<p class="trouble" role="alert">${this.error}</p>` : ""}
      <ol class="log tail" tabindex="0" aria-label=${`Newest of ${s.stream?.name ?? ""}`}>${this.lines.map((line, i) =>
    html`<li ${i === this.lines.length - 1 ? ref((el) => el?.scrollIntoView({ block: "nearest" })) : ""}><code>${line}</code></li>`)}</ol>`;
  }

  /** Ask for what has come since the last answer, one request at a time. */
  private want(s: Session): void {
    const { stream, trace } = s;
    if (!stream) return;
    const of = [trace.id, trace.generation, stream.name, this.filter.query].join(" ");
    if (of !== this.of) {
      this.asking?.abort();
      [this.of, this.upTo, this.lines, this.error, this.asking] = [of, -1, [], "", undefined];
    }
    if (this.asking || this.again.pending || stream.insns <= this.upTo) return;
    const begin = this.upTo < 0 ? Math.max(0, stream.insns - MOST) : this.upTo;
    void this.fetch(s, nextRange(begin, stream.insns, this.filter.query === "" ? MOST : MOST_FILTERED));
  }

  private async fetch(s: Session, { from, to, skipped }: ReturnType<typeof nextRange>): Promise<void> {
    const controller = this.asking = new AbortController();
    try {
      const told = await text(`${rangeUrl(s.trace.id, s.stream!.name, "insn", from, to, "named")}${this.filter.query}`, controller.signal);
      if (this.asking !== controller) return;
      const lines = told.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
      const left = skipped > 0 ? [`… ${grouped(skipped)} instructions`] : [];
      this.lines = [...this.lines, ...left, ...lines].slice(-KEPT);
      this.upTo = to;
      this.error = "";
    } catch (error) {
      if (this.asking !== controller) return;
      this.error = (error as Error).message;
    }
    this.asking = undefined;
    this.again.within(Math.max(PAUSE_MS, pace.wait));
    this.app.changed();
  }
}
