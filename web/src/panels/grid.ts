// SPDX-License-Identifier: MIT
// A table of any length of which only the visible rows exist. Rows are selected by click and keys.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";

const ROW = 22;
const HEAD = 24;
const AHEAD = 8;

export interface Rows {
  readonly id: string; // of the element, and of its rows' ids
  readonly label: string;
  readonly cls: string; // class that sets the widths of the columns
  readonly style?: string; // what that takes of them
  readonly heads: readonly string[];
  readonly n: number;
  readonly total: number | undefined;
  readonly selected: number; // -1: none
  cells(i: number): readonly unknown[];
  go(i: number): void;
  /** Called when rows near an end are visible. */
  edge(by: 1 | -1): void;
}

export class Grid {
  private element: HTMLElement | undefined;
  private top = 0;
  private height = 400;
  private shown = -1; // the selected row that was last scrolled to
  private readonly observer = new ResizeObserver(() => {
    const height = this.element?.clientHeight ?? 0;
    if (height === this.height || height === 0) return;
    this.height = height;
    this.changed();
  });

  constructor(private readonly changed: () => void) {}

  private attach = (element: Element | undefined): void => {
    if (element === this.element) return;
    this.observer.disconnect();
    this.element = element as HTMLElement | undefined;
    this.shown = -1;
    if (this.element) this.observer.observe(this.element);
  };

  /** `added` rows were inserted at the begin. */
  shift(added: number): void {
    this.shown += this.shown >= 0 ? added : 0;
    this.top += added * ROW;
    queueMicrotask(() => { if (this.element) this.element.scrollTop = this.top; });
  }

  private reveal(rows: Rows): void {
    if (rows.selected === this.shown || rows.selected < 0 || !this.element) return;
    this.shown = rows.selected;
    const y = rows.selected * ROW;
    const room = this.height - HEAD;
    if (y >= this.top && y + ROW <= this.top + room) return;
    this.top = Math.max(0, y - Math.floor(room / 3));
    queueMicrotask(() => { if (this.element) this.element.scrollTop = this.top; });
  }

  private key(e: KeyboardEvent, rows: Rows): void {
    const page = Math.max(1, Math.floor((this.height - HEAD) / ROW) - 1);
    const at = rows.selected;
    const to: Record<string, number> = {
      ArrowUp: at - 1, ArrowDown: at + 1, PageUp: at - page, PageDown: at + page, Home: 0, End: rows.n - 1,
    };
    const next = to[e.key];
    if (next === undefined || rows.n === 0) return;
    e.preventDefault();
    e.stopPropagation();
    if (next < 0) rows.edge(-1);
    if (next >= rows.n) rows.edge(1);
    rows.go(Math.max(0, Math.min(rows.n - 1, next)));
  }

  view(rows: Rows): TemplateResult {
    this.reveal(rows);
    const from = Math.max(0, Math.floor(this.top / ROW) - AHEAD);
    const to = Math.min(rows.n, Math.ceil((this.top + this.height) / ROW) + AHEAD);
    const active = rows.selected >= from && rows.selected < to ? `${rows.id}-${rows.selected}` : "";
    const row = (i: number): TemplateResult => html`<div role="row" id=${`${rows.id}-${i}`} aria-rowindex=${i + 2}
      aria-selected=${i === rows.selected} class=${i === rows.selected ? "here" : ""} .style=${`top:${i * ROW}px`}
      @click=${() => rows.go(i)}>${rows.cells(i).map((c) => html`<div role="gridcell">${c}</div>`)}</div>`;
    const shown: TemplateResult[] = [];
    for (let i = from; i < to; i++) shown.push(row(i));
    return html`<div class="grid ${rows.cls}" id=${rows.id} .style=${rows.style ?? ""} role="grid" tabindex="0" aria-label=${rows.label} aria-rowcount=${(rows.total ?? rows.n) + 1}
      aria-activedescendant=${active} ${ref(this.attach)} @keydown=${(e: KeyboardEvent) => this.key(e, rows)}
      @scroll=${(e: Event) => {
    this.top = (e.currentTarget as HTMLElement).scrollTop;
    if (this.top < 4 * ROW) rows.edge(-1);
    if (this.top + this.height > (rows.n - 4) * ROW) rows.edge(1);
    this.changed();
  }}><div role="rowgroup" class="gridhead"><div role="row" aria-rowindex="1">${rows.heads.map((h) => html`<div role="columnheader">${h}</div>`)}</div></div>
      <div role="rowgroup" class="gridbody" .style=${`height:${rows.n * ROW}px`}>${shown}</div></div>`;
  }
}
