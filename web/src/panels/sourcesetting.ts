// SPDX-License-Identifier: MIT
// The form that says where sources are on this machine, and which editor opens them.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { EDITORS, isMap, keepSources, sources } from "../view/sources.ts";

export class SourceSetting {
  private open = false;

  constructor(private readonly app: App) {}

  button(): TemplateResult {
    return html`<button class="action" aria-expanded=${this.open} title="Where the sources are on this machine, and which editor opens them"
      @click=${() => { this.open = !this.open; this.app.changed(); }}>Paths</button>`;
  }

  /** `file`: for which it is asked. */
  view(file: string): TemplateResult | typeof nothing {
    if (!this.open) return nothing;
    const { maps, editor } = sources();
    const folder = file.slice(0, Math.max(0, file.lastIndexOf("/"))) || "/build";
    const save = (e: Event): void => {
      const form = new FormData((e.target as HTMLInputElement).form!);
      const lines = String(form.get("maps")).split("\n").filter((line) => line.trim() !== "");
      const bad = lines.find((line) => !isMap(line));
      if (bad !== undefined) this.app.say(`${bad} is not A=B, two folders.`);
      keepSources({ maps: lines.filter(isMap), editor: String(form.get("editor")).trim() });
      this.app.changed();
    };
    return html`<form class="imageform paths" @submit=${(e: Event) => e.preventDefault()} @change=${save}>
      <label>Folders: A=B shows B instead of A, one a line <textarea name="maps" rows="2" spellcheck="false" placeholder=${`${folder}=/home/me/src`}
        .value=${maps.join("\n")}></textarea></label>
      <label>Editor: an address with {path} and {line}<input type="text" name="editor" list="editors" spellcheck="false" placeholder=${EDITORS[0]![1]} .value=${editor}></label>
      <datalist id="editors">${EDITORS.map(([name, address]) => html`<option value=${address}>${name}</option>`)}</datalist></form>`;
  }
}
