// SPDX-License-Identifier: MIT
// The list of instructions. Only the visible rows exist, whatever the length of the trace. It has
// no scroll height, since a billion rows exceed what browsers can lay out; wheel and keys move it.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { addressDigits, grouped } from "../base/format.ts";
import type { InsnRow } from "../data/model.ts";

const ROW = 19;

export class InsnList {
  private top = 0; // instruction of the first row; fractions allow smooth scrolling
  private rows = 20;
  private shownCursor: number | undefined;
  private shownLane = -1;
  private element: HTMLElement | undefined;
  private readonly observer = new ResizeObserver(() => this.measure());

  constructor(private readonly app: App) {}

  private attach = (element: Element | undefined): void => {
    if (element === this.element) return;
    if (this.element) this.observer.unobserve(this.element);
    this.element = element as HTMLElement | undefined;
    if (this.element) this.observer.observe(this.element);
  };

  private measure(): void {
    const rows = Math.max(1, Math.floor((this.element?.clientHeight ?? 0) / ROW));
    if (rows === this.rows) return;
    this.rows = rows;
    this.app.changed();
  }

  private keepInView(s: Session, total: number): void {
    const at = s.cursorInsn;
    if (at !== undefined && (at !== this.shownCursor || s.lane !== this.shownLane)) {
      this.shownCursor = at;
      // A step does not move the list while the row is in it; a jump centres it.
      if (s.lane !== this.shownLane || at < this.top + 1 || at > this.top + this.rows - 2) {
        const near = Math.abs(at - this.top) < 2 * this.rows && s.lane === this.shownLane;
        this.top = !near ? at - Math.floor(this.rows / 3)
          : at < this.top + 1 ? at - 1 : at - this.rows + 2;
      }
      this.shownLane = s.lane;
    } else if (at === undefined && s.lane !== this.shownLane) {
      this.top = 0;
      this.shownLane = s.lane;
    }
    this.top = Math.max(0, Math.min(this.top, total - this.rows));
  }

  private scroll(by: number): void {
    this.top += by;
    this.app.changed();
  }

  private key(e: KeyboardEvent, s: Session, total: number): void {
    const at = s.cursorInsn ?? Math.floor(this.top);
    const steps: Record<string, number> = {
      ArrowUp: -1, ArrowDown: 1, PageUp: -this.rows, PageDown: this.rows, Home: -at, End: total - 1 - at,
    };
    const by = steps[e.key];
    if (by === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    void this.app.goTo(Math.max(0, Math.min(total - 1, at + by)));
  }

  view(s: Session): TemplateResult {
    const total = s.stream?.insns ?? 0;
    this.keepInView(s, total);
    const cache = s.insns(s.lane);
    const first = Math.floor(this.top);
    const last = Math.min(total, first + this.rows);
    if (total > 0) cache?.want(first, last, total);
    const rows: TemplateResult[] = [];
    let before = first > 0 ? cache?.get(first - 1)?.fn : "";
    for (let i = first; i < last; i++) {
      const row = cache?.get(i);
      rows.push(this.row(i, row, s.cursorInsn === i, row !== undefined && row.fn !== before));
      before = row?.fn;
    }
    const active = s.cursorInsn !== undefined && s.cursorInsn >= first && s.cursorInsn < last
      ? `insn-${s.cursorInsn}` : "";
    return html`<div class="insns" tabindex="0" role="listbox" aria-label="Instructions"
      aria-activedescendant=${active} ${ref(this.attach)}
      @wheel=${(e: WheelEvent) => { e.preventDefault(); this.scroll(e.deltaY / ROW); }}
      @keydown=${(e: KeyboardEvent) => this.key(e, s, total)}>${rows}</div>`;
  }

  private row(i: number, row: InsnRow | undefined, here: boolean, begins: boolean): TemplateResult {
    if (!row) {
      return html`<div class="insn" role="option" aria-selected=${here} id=${`insn-${i}`}
        ><span class="i">${grouped(i)}</span><span class="pc muted">…</span></div>`;
    }
    // Software trace is in the list too, but was not executed anywhere.
    const software = row.encoding === "" && /^0x0*$/.test(row.pc);
    const colour = row.fn === "" ? "transparent" : this.app.swatch(row.fn).css;
    return html`<div class="insn ${here ? "here" : ""}" role="option" aria-selected=${here} id=${`insn-${i}`}
      title=${[...row.events, `${row.pc} ${row.encoding}`, row.fn + row.offset, row.mode].filter(Boolean).join("\n")}
      .style=${`border-left-color:${colour}`} @click=${() => void this.app.goTo(i)}
      ><span class="i">${grouped(i)}</span><span class="pc">${software ? "" : addressDigits(row.pc)}</span
      ><span class="t">${row.text || row.encoding || "–"}</span
      >${row.events.length > 0 ? html`<span class=${row.events.some((e) => e.startsWith("gap")) ? "ev lost" : "ev"}>${row.events.join(", ")}</span>`
    : begins ? html`<span class="f">${row.fn}</span>` : ""}</div>`;
  }
}
