// SPDX-License-Identifier: MIT
// A part of the program by mode, process and thread: the server leaves out the rest (docs/flow-text.md).
import { html, type TemplateResult } from "lit-html";

const FIELDS = [["mode", "u, k, el1"], ["process", "httpd, 42"], ["thread", "number"]] as const;

export class Filter {
  private readonly only = new Map<string, string>();

  constructor(private readonly changed: () => void) {}

  /** For a request, "" for all of the program. */
  get query(): string {
    return FIELDS.flatMap(([key]) => (this.only.get(key) ? [`&${key}=${encodeURIComponent(this.only.get(key)!)}`] : [])).join("");
  }

  view(): TemplateResult {
    return html`<p class="buttons only" role="group" aria-label="Only">Only ${FIELDS.map(([key, example]) => html`<label>${key}
      <input type="text" spellcheck="false" placeholder=${example} .value=${this.only.get(key) ?? ""}
        @change=${(e: Event) => { this.only.set(key, (e.target as HTMLInputElement).value.trim()); this.changed(); }}></label>`)}</p>`;
  }
}
