// SPDX-License-Identifier: MIT
// Lists of search hits, events and gaps, synchronized with the cursor in both directions.
import { html, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { timeText } from "../timeline/describe.ts";
import { EVENTS } from "../data/overview.ts";
import { Hits } from "../view/find.ts";
import { addressDigits, grouped, withNames } from "../base/format.ts";
import type { Hit } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { Grid } from "./grid.ts";
import { REASONS } from "./reach.ts";

/** Pixels of a character, on average, and how many rows are looked at for the widths of columns. */
const CHARACTER = 6.7;
const LOOKED = 300;

class HitGrid {
  private readonly grid: Grid;
  private here: string | undefined; // the cursor around which the list was last loaded

  constructor(private readonly app: App, private readonly id: string) {
    this.grid = new Grid(() => app.changed());
  }

  view(s: Session, list: Hits, label: string): TemplateResult {
    const several = s.trace.streams.length > 1;
    const extend = (by: 1 | -1): void => {
      const n = list.hits.length;
      void list.extend(by).then((came) => {
        if (came && by < 0) this.grid.shift(list.hits.length - n);
      });
    };
    const ns = s.stream?.timeIsNs ?? true;
    const timed = s.view.axis === "time";
    const place = (hit: Hit): string => (timed && hit.time !== undefined ? timeText(s, hit.time, ns) : grouped(hit.insn));
    // The columns in front of the texts are as wide as what is in them, so that these are cut last.
    const width = (text: (hit: Hit) => string, least: number, most: number): string =>
      `${Math.min(most, list.hits.slice(0, LOOKED).reduce((n, hit) => Math.max(n, Math.ceil(CHARACTER * text(hit).length)), least))}px`;
    const widths = `--when:${width(place, timed ? 44 : 62, 132)};--lane:${width((hit) => hit.stream, 30, 92)}`;
    return this.grid.view({
      id: this.id, label, cls: several ? "hits several" : "hits", style: widths, n: list.hits.length, total: list.total,
      heads: [...(several ? ["Lane"] : []), timed ? "Time" : "Instruction", "What"],
      selected: this.selected(s, list),
      cells: (i) => {
        const hit = list.hits[i]!;
        const at = list.query.event !== undefined || /^0x0*$/.test(hit.pc) ? "" : addressDigits(hit.pc);
        const what = withNames(hit.text).replace(/^gap ([\w-]+)/, (_, reason: string) => `gap: ${REASONS[reason] ?? reason}`);
        return [...(several ? [html`<span title=${hit.stream}>${hit.stream}</span>`] : []), place(hit), html`<span title=${[hit.text, at].filter(Boolean).join("\n")}>${what || at}</span>`];
      },
      go: (i) => this.app.finder.goToOf(list, i),
      edge: extend,
    });
  }

  /** The row at the cursor, or the last one before it. If it is not loaded, the list moves. */
  private selected(s: Session, list: Hits): number {
    const insn = s.cursorInsn;
    const stream = s.stream?.name;
    if (insn === undefined || stream === undefined || list.hits.length === 0) return -1;
    const at = list.hits[list.index];
    if (at && at.insn === insn && at.stream === stream) return list.index;
    const time = s.position?.time;
    const inFront = (h: Hit): boolean => (h.stream === stream ? h.insn <= insn
      : h.time !== undefined && time !== undefined ? h.time <= time
        : s.laneOf(h.stream) < s.lane);
    let low = 0;
    let high = list.hits.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (inFront(list.hits[middle]!)) low = middle + 1;
      else high = middle;
    }
    const key = `${stream}/${insn}`;
    const outside = (low === 0 && list.before) || (low === list.hits.length && list.behind);
    if (outside && !list.running && this.here !== key && (s.position || s.view.axis === "insn")) {
      this.here = key;
      void list.around({ stream, insn }).then(() => list.count());
    }
    return low - 1;
  }
}

/** "312, 200 nearest listed" */
function amount(list: Hits): string {
  const { total, hits } = list;
  if (total === undefined) return `${grouped(hits.length)}${list.behind || list.before ? " nearest" : ""}`;
  return hits.length < total ? `${grouped(total)}, ${grouped(hits.length)} nearest listed` : grouped(total);
}

export class FindPanel {
  private readonly grid: HitGrid;

  constructor(private readonly app: App) {
    this.grid = new HitGrid(app, "hits");
  }

  view(s: Session): TemplateResult {
    const { found } = s;
    if (!found) {
      return html`<p class="muted hint">Search for a function by its name or part of it, whole words (<code>"read"</code>), a pattern (<code>read_*</code>), <code>main+0x10</code>, an address or a
        range (<code>0x8000-0x9000</code>), an event (<code>exception</code>, <code>gap</code>), a mnemonic
        (<code>op:ldr*</code>), an encoding (<code>opcode:d503201f</code>), what a program printed (<code>text:fault</code>), or go to an instruction
        (<code>#1000000</code>) or a time (<code>12.5 ms</code>).</p>`;
    }
    const { list } = found;
    if (list.error !== "") return html`<p class="trouble" role="alert">${list.error}</p>${this.offers(found.offers)}`;
    if (list.hits.length === 0) {
      return list.running ? html`<p class="muted hint">Searching…</p>`
        : html`<p class="muted hint">Nothing found: ${list.what || found.text}.</p>${this.offers(found.offers)}`;
    }
    return html`<p class="muted hint">${list.what || found.text}: ${amount(list)}${list.running ? "…" : ""}</p>
      ${this.grid.view(s, list, "Hits")}`;
  }

  private offers(names: readonly string[]): TemplateResult {
    return names.length === 0 ? html`` : html`<p class="buttons"><span class="muted">Did you mean</span>
      ${names.map((name) => html`<button class="action" @click=${() => this.app.lookFor(name)}>${name}</button>`)}</p>`;
  }
}

const KINDS: readonly (readonly [string, string])[] = [
  [EVENTS, "Events and gaps"], ["exception", "Exceptions"], ["return", "Exception returns"],
  ["event", "Hardware events"], ["software", "Software trace"], ["mode", "Mode changes"],
  ["context", "Context changes"], ["trace-on", "Tracing on"], ["note", "Notes of the trace, perf's events"], ["gap", "Gaps"],
  ["overflow", "Gaps: overflow"], ["sync", "Gaps: not synchronised"], ["bad-packet", "Gaps: bad packet"],
  ["no-image", "Gaps: no image"], ["no-path", "Gaps: no path"], ["discard", "Gaps: discarded"],
  ["off", "Gaps: tracing off"], ["transport", "Gaps: transport"], ["switched-out", "Gaps: switched out"],
];

export class EventsPanel {
  private list: Hits | undefined;
  private key = "";
  private readonly grid: HitGrid;

  constructor(private readonly app: App) {
    this.grid = new HitGrid(app, "events");
  }

  view(s: Session): TemplateResult {
    const kinds = this.app.kinds || EVENTS;
    const key = [s.trace.id, s.trace.createdMs, s.trace.generation, kinds].join(" ");
    if (key !== this.key || !this.list) {
      this.key = key;
      this.list?.stop();
      const list = new Hits(s.trace, { event: kinds }, () => this.app.changed());
      this.list = list;
      const spot = s.stream && s.cursorInsn !== undefined ? { stream: s.stream.name, insn: s.cursorInsn } : undefined;
      void list.around(spot).then(() => list.count());
    }
    const { list } = this;
    const known = KINDS.some(([k]) => k === kinds);
    return html`<p class="buttons"><label>Show <select aria-label="Kinds of events"
        @change=${(e: Event) => this.app.setKinds((e.target as HTMLSelectElement).value)}>
        ${known ? html`` : html`<option value=${kinds} selected>${kinds}</option>`}
        ${KINDS.map(([k, text]) => html`<option value=${k} ?selected=${k === kinds}>${text}</option>`)}</select></label>
        <span class="muted">${list.running && list.hits.length === 0 ? "…" : amount(list)}</span></p>
      ${list.error !== "" ? html`<p class="trouble" role="alert">${list.error}</p>` : this.grid.view(s, list, "Events and gaps")}`;
  }
}
