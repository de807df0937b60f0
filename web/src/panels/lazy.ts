// SPDX-License-Identifier: MIT
// Panels and dialogs whose code is loaded when they are first opened.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";

export interface Loaded<Of extends unknown[] = [Session]> {
  view(...of: Of): TemplateResult;
  /** Content below the timeline. */
  below?(...of: Of): TemplateResult | typeof nothing;
}

/** The file with all of them. */
export const later = () => import("./later.js"); // its type is that of later.ts

const LOADING = html`<p class="muted hint">Loading…</p>`;

export class Lazy<Of extends unknown[] = [Session]> {
  private made: Loaded<Of> | undefined;
  private loading = false;
  private trouble = "";

  /** `meanwhile` is shown until it is there. */
  constructor(
    private readonly app: App, private readonly load: () => Promise<Loaded<Of>>, private readonly meanwhile: TemplateResult | typeof nothing = LOADING,
  ) {}

  below(...of: Of): TemplateResult | typeof nothing {
    return this.made?.below?.(...of) ?? nothing;
  }

  view(...of: Of): TemplateResult | typeof nothing {
    if (this.made) return this.made.view(...of);
    if (!this.loading) {
      this.loading = true;
      this.trouble = "";
      this.load().then((made) => { this.made = made; }, (error: unknown) => {
        this.loading = false;
        // The server may have been replaced by one with another page.
        this.trouble = `${(error as Error).message}: reload the page.`;
      }).finally(() => this.app.changed());
    }
    return this.trouble !== "" ? html`<p class="trouble" role="alert">${this.trouble}</p>` : this.meanwhile;
  }
}
