// SPDX-License-Identifier: MIT
// The command palette: all keyboard commands, panels and traces, found by typing.
import { html, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { BINDINGS, GROUPS, shownKeys, type Command } from "../view/keys.ts";
import { encodePlace, emptyPlace, type Panel } from "../view/url.ts";
import { modal } from "./modal.ts";

interface Choice {
  readonly text: string;
  readonly keys: string;
  act(): void;
}

const MOST = 12;

export class CommandBox {
  open = false;
  private text = "";
  private marked = 0;

  constructor(
    private readonly app: App, private readonly press: (e: KeyboardEvent) => void,
    private readonly panels: readonly (readonly [Panel, string])[], private readonly picture: () => void,
  ) {}

  toggle(): void {
    this.open = !this.open;
    this.text = "";
    this.marked = 0;
    this.app.changed();
  }

  private run(command: Command): void {
    const b = BINDINGS.find((x) => x.command === command)!;
    const key = new KeyboardEvent("keydown", {
      code: b.code ?? "", key: b.key ?? "", shiftKey: b.shift === true, ctrlKey: b.ctrl === true,
    });
    this.press(key);
    window.dispatchEvent(new KeyboardEvent("keyup", { code: b.code ?? "" }));
  }

  private choices(): Choice[] {
    const { app } = this;
    const s = app.session;
    const out: Choice[] = [];
    for (const { title, commands } of GROUPS) {
      for (const c of commands) {
        if (c.command === "escape" || c.command === "commands" || (!s && c.command !== "help" && c.command !== "theme")) continue;
        out.push({ text: `${title}: ${c.text}`, keys: shownKeys(c.command).join(" "), act: () => this.run(c.command) });
      }
    }
    if (s) {
      out.push({ text: "Save a picture of the view (PNG)", keys: "", act: this.picture });
      for (const [id, text] of this.panels) out.push({ text: `Panel: ${text}`, keys: "", act: () => app.setPanel(id) });
      s.trace.streams.forEach((stream, lane) => out.push({ text: `Lane: ${s.called(stream.name)}`, keys: "", act: () => app.selectLane(lane) }));
    }
    out.push({ text: "All traces", keys: "", act: () => { location.hash = "#/"; } });
    for (const t of app.traces ?? []) out.push({ text: `Trace: ${t.id}`, keys: "", act: () => { location.hash = encodePlace(emptyPlace(t.id)); } });
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    const phrase = words.join(" ");
    const whole = (c: Choice): number => (c.text.toLowerCase().includes(phrase) ? 0 : 1);
    return out.filter((c) => words.every((w) => c.text.toLowerCase().includes(w)))
      .sort((a, b) => whole(a) - whole(b)).slice(0, MOST);
  }

  view(): TemplateResult {
    const all = this.choices();
    this.marked = Math.max(0, Math.min(this.marked, all.length - 1));
    const take = (choice: Choice | undefined, from: Element): void => {
      if (!choice) return;
      from.closest("dialog")!.close();
      choice.act();
      this.app.changed();
    };
    const key = (e: KeyboardEvent): void => {
      const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
      if (by !== 0 && all.length > 0) this.marked = (this.marked + by + all.length) % all.length;
      else if (e.key === "Enter") take(all[this.marked], e.currentTarget as Element);
      else return;
      e.preventDefault();
      this.app.changed();
    };
    return modal("form commands", "Commands", html`
      <input type="text" role="combobox" aria-expanded="true" aria-controls="commands" aria-label="Command" autofocus spellcheck="false"
        aria-activedescendant=${all.length > 0 ? `command-${this.marked}` : ""} placeholder="Type to filter" .value=${this.text} @keydown=${key}
        @input=${(e: Event) => { this.text = (e.target as HTMLInputElement).value; this.marked = 0; this.app.changed(); }}>
      <div id="commands" role="listbox" aria-label="Commands">${all.map((c, i) => html`<div role="option" id=${`command-${i}`} aria-selected=${i === this.marked}
        @click=${(e: Event) => take(c, e.currentTarget as Element)}><span>${c.text}</span>${c.keys ? html`<kbd>${c.keys}</kbd>` : ""}</div>`)}</div>
      <p class="muted" ?hidden=${all.length > 0}>No matching command.</p>`, () => { this.open = false; this.app.changed(); });
  }
}
