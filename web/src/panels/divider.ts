// SPDX-License-Identifier: MIT
// The bar between timeline and panel, moved by dragging or with arrow keys. The browser remembers
// the width of the panel.
import { html, type TemplateResult } from "lit-html";

const LEAST = 260;
const USUAL = 440; // more on a wide screen: so much of it, and at most
const SHARE = 0.22;
const WIDE = 600;
const STEP = 24;

export class Divider {
  private size: number;

  constructor(private readonly changed: () => void) {
    this.size = Number(localStorage.getItem("panel")) || this.usual;
    this.apply();
  }

  private get usual(): number {
    return Math.min(WIDE, Math.max(USUAL, Math.floor(window.innerWidth * SHARE)));
  }

  private get most(): number {
    return Math.max(LEAST, Math.floor(window.innerWidth * 0.7));
  }

  private set(size: number): void {
    this.size = Math.round(Math.min(this.most, Math.max(LEAST, size)));
    localStorage.setItem("panel", String(this.size));
    this.apply();
    this.changed();
  }

  private apply(): void {
    document.documentElement.style.setProperty("--panel", `${this.size}px`);
  }

  private drag(e: PointerEvent): void {
    const bar = e.currentTarget as HTMLElement;
    bar.setPointerCapture(e.pointerId);
    const from = this.size + e.clientX;
    const move = (m: PointerEvent): void => this.set(from - m.clientX);
    bar.addEventListener("pointermove", move);
    const end = (): void => bar.removeEventListener("pointermove", move);
    bar.addEventListener("pointerup", end, { once: true });
    bar.addEventListener("pointercancel", end, { once: true });
  }

  private key(e: KeyboardEvent): void {
    const to: Record<string, number> = {
      ArrowLeft: this.size + STEP, ArrowRight: this.size - STEP, Home: this.most, End: LEAST,
    };
    const size = to[e.key];
    if (size === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    this.set(size);
  }

  view(): TemplateResult {
    return html`<div class="divider" role="separator" aria-orientation="vertical" aria-label="Width of the panel" tabindex="0"
      aria-valuemin=${LEAST} aria-valuemax=${this.most} aria-valuenow=${Math.min(this.size, this.most)} title="Width of the panel; double-click to reset"
      @pointerdown=${(e: PointerEvent) => this.drag(e)} @keydown=${(e: KeyboardEvent) => this.key(e)}
      @dblclick=${() => this.set(this.usual)}></div>`;
  }
}
