// SPDX-License-Identifier: MIT
// A panel whose code is loaded when it is first opened.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";

export interface Loaded {
  view(s: Session): TemplateResult;
  /** Content below the timeline. */
  below?(s: Session): TemplateResult | typeof nothing;
}

export class Lazy {
  private made: Loaded | undefined;
  private loading = false;
  private trouble = "";

  constructor(private readonly app: App, private readonly load: () => Promise<Loaded>) {}

  below(s: Session): TemplateResult | typeof nothing {
    return this.made?.below?.(s) ?? nothing;
  }

  view(s: Session): TemplateResult {
    if (this.made) return this.made.view(s);
    if (!this.loading) {
      this.loading = true;
      this.trouble = "";
      this.load().then((made) => { this.made = made; }, (error: unknown) => {
        this.loading = false;
        this.trouble = (error as Error).message;
      }).finally(() => this.app.changed());
    }
    return this.trouble !== "" ? html`<p class="trouble" role="alert">${this.trouble}</p>`
      : html`<p class="muted hint">Loading…</p>`;
  }
}
