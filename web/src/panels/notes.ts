// SPDX-License-Identifier: MIT
// Notes of the trace: list, create, edit and delete them; everything works with the keyboard alone.
import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import * as api from "../data/api.ts";
import type { App } from "../view/app.ts";
import { timeText } from "../timeline/describe.ts";
import { ago, grouped } from "../base/format.ts";
import { noteSpan, type Note } from "../data/notes.ts";
import type { Session } from "../view/session.ts";

interface Draft {
  readonly id: number; // 0: a new one
  readonly stream: string;
  readonly at: number;
  readonly to: number;
  text: string;
}

export class NotesPanel {
  private draft: Draft | undefined;
  private asked = 0; // last request for a new note that was handled
  private focused: Draft | undefined;

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    const { notes } = s;
    if (this.asked !== this.app.noting.wished) {
      this.asked = this.app.noting.wished;
      void this.begin(s);
    }
    const here = this.nearest(s);
    const can = s.stream !== undefined && s.cursor !== undefined;
    return html`<div class="notes">
      <p class="buttons"><button class="action" ?disabled=${!can} @click=${() => void this.begin(s)}>New note ${s.selection ? "for the selection" : "at the cursor"}</button>
        <button class="action" ?disabled=${!can} @click=${() => void this.app.noting.bookmark()}>Bookmark</button></p>
      ${notes.trouble !== "" ? html`<p class="trouble" role="alert">${notes.trouble}</p>` : nothing}
      ${this.draft ? this.editor(s, this.draft) : nothing}
      ${notes.list.length === 0 && !this.draft ? html`<p class="muted hint">No notes yet. M adds one at the cursor, Shift M a bookmark; everyone who can see the trace sees them.</p>` : nothing}
      <ul class="notelist" aria-label="Notes">${notes.list.map((note) => this.row(s, note, note === here))}</ul></div>`;
  }

  private row(s: Session, note: Note, here: boolean): TemplateResult {
    const stream = s.trace.streams.find((x) => x.name === note.stream);
    const where = note.time !== undefined && s.view.axis === "time" ? timeText(s, note.time, stream?.timeIsNs ?? true)
      : `${grouped(note.at)}${note.to > note.at ? ` – ${grouped(note.to)}` : ""}`;
    const title = note.text === "" ? "bookmark" : note.text.split("\n")[0]!;
    return html`<li class=${here ? "here" : ""}>
      <button class="plain go" aria-current=${here ? "true" : "false"} @click=${() => this.app.noting.goTo(note)}
        @keydown=${(e: KeyboardEvent) => { if (e.key === "Delete") void this.remove(s, note); }}>
        <span class="muted">${note.stream} · ${where} · ${ago(note.writtenMs, Date.now())}</span>
        <span class="text">${note.text === "" ? html`<i>bookmark</i>` : note.text}</span></button>
      <button class="plain" aria-label=${`Edit “${title}”`} title="Edit" @click=${() => { this.draft = { ...note }; this.app.changed(); }}>✎</button>
      <button class="plain" aria-label=${`Remove “${title}”`} title="Remove (Delete)" @click=${() => void this.remove(s, note)}>×</button></li>`;
  }

  private editor(s: Session, draft: Draft): TemplateResult {
    const focus = (element: Element | undefined): void => {
      if (!element || this.focused === draft) return;
      this.focused = draft;
      (element as HTMLTextAreaElement).value = draft.text;
      // Once it is in the page.
      queueMicrotask(() => (element as HTMLTextAreaElement).focus());
    };
    return html`<form class="note" @submit=${(e: Event) => { e.preventDefault(); void this.save(s); }}>
      <label>${draft.id === 0 ? "New note" : "Note"} at ${draft.stream} ${grouped(draft.at)}${draft.to > draft.at ? ` – ${grouped(draft.to)}` : ""}
        <textarea rows="3" maxlength="2000" ${ref(focus)} @input=${(e: Event) => { draft.text = (e.target as HTMLTextAreaElement).value; }}
          @keydown=${(e: KeyboardEvent) => this.key(e, s)}></textarea></label>
      <p class="buttons"><button class="action" type="submit" title="Ctrl Enter">Save</button>
        <button class="action" type="button" title="Esc" @click=${() => this.close()}>Cancel</button></p></form>`;
  }

  private key(e: KeyboardEvent, s: Session): void {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) void this.save(s);
    else if (e.key === "Escape") this.close();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  private close(): void {
    this.draft = undefined;
    this.app.changed();
  }

  private async begin(s: Session): Promise<void> {
    const place = await notePlace(s);
    if (!place) return;
    this.draft = { id: 0, ...place, text: "" };
    this.app.changed();
  }

  private async save(s: Session): Promise<void> {
    const { draft } = this;
    if (!draft) return;
    const written = await s.notes.put(s.trace, draft, draft.text.trim());
    if (!written) return;
    this.app.say(draft.text.trim() === "" ? "Bookmark saved." : "Note saved.");
    if (this.draft === draft) this.close();
  }

  private async remove(s: Session, note: Note): Promise<void> {
    await s.notes.remove(s.trace, note.id);
    this.app.say("Note removed.");
  }

  /** The last one at or before the cursor, in its lane. */
  private nearest(s: Session): Note | undefined {
    if (s.cursor === undefined) return undefined;
    return s.notes.list.filter((n) => n.stream === s.stream?.name && (noteSpan(n, s.view.axis)?.[0] ?? Infinity) <= s.cursor!).at(-1);
  }
}

/** The selection, or the cursor, as instructions of the selected lane. */
export async function notePlace(s: Session): Promise<{ stream: string; at: number; to: number } | undefined> {
  const name = s.stream?.name;
  if (name === undefined || (s.cursor === undefined && !s.selection)) return undefined;
  const insn = async (at: number): Promise<number> =>
    (s.view.axis === "insn" ? Math.floor(at) : (await api.locate(s.trace, name, "time", at)).insn);
  const end = Math.max(0, (s.stream?.insns ?? 1) - 1);
  const at = Math.min(end, await insn(s.selection?.[0] ?? s.cursor!));
  const to = s.selection ? Math.min(end, Math.max(at, await insn(s.selection[1]) - 1)) : at;
  return { stream: name, at, to };
}
