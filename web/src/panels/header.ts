// SPDX-License-Identifier: MIT
// The bar at the top: current location, search, follow, theme, help.
import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { widthText } from "../timeline/describe.ts";
import { suggestions } from "../view/search.ts";
import { stateBadge } from "./list.ts";

/** The search box keeps track of the marked suggestion. */
export class Header {
  private input: HTMLInputElement | undefined;
  private marked = -1;
  private listed = false;

  constructor(
    private readonly app: App, private readonly toggleTheme: () => void,
    private readonly leave: () => void,
  ) {}

  focusSearch(): void {
    this.input?.focus();
    this.input?.select();
  }

  view(): TemplateResult {
    const { app } = this;
    const s = app.session;
    return html`<header>
      <a class="brand" href="#/" aria-label="tracelake: all traces">
        <svg viewBox="0 0 20 16" aria-hidden="true"><path d="M0 2h8v3H0zM10 2h10v3H10z"/><path d="M0 7h4v3H0zM6 7h14v3H6z"/><path d="M0 12h12v3H0zM14 12h6v3h-6z"/></svg>
        <span>tracelake</span></a>
      ${s ? html`<span class="sep" aria-hidden="true">/</span><h1 class="title" title=${s.trace.id}>${s.trace.id}</h1>
        ${stateBadge(s.trace)}<span class="muted rig">${s.trace.rig}</span>` : nothing}
      <div class="grow"></div>
      ${s ? this.search(s) : nothing}
      <div class="grow"></div>
      ${s && (s.trace.state === "live" || s.trace.state === "decoding") ? this.follow(s) : nothing}
      ${app.connection === "lost" || app.connection === "polling"
    ? html`<span class="badge ${app.connection === "lost" ? "failed" : "decoding"}">${app.connection === "lost" ? "offline" : "polling"}</span>` : nothing}
      ${s ? html`<button class="icon" aria-pressed=${app.table} title="Lanes as a table (L)" aria-label="Lanes as a table"
        @click=${() => { app.table = !app.table; app.changed(); }}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1.5 2.5h13v11h-13zM1.5 6.5h13M1.5 10h13M6 2.5v11"/></svg></button>
      <button class="icon" aria-pressed=${app.panel !== "none"} title="Side panel (I)" aria-label="Side panel"
        @click=${() => app.setPanel(app.panel === "none" ? "insns" : "none")}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1.5 2.5h13v11h-13zM10 2.5v11"/></svg></button>` : nothing}
      <button class="icon" title="Light or dark (K)" aria-label="Light or dark" @click=${this.toggleTheme}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="5.5"/><path class="solid" d="M8 2.5a5.5 5.5 0 0 1 0 11z"/></svg></button>
      <button class="icon" title="Keys (?)" aria-label="Keyboard help" aria-haspopup="dialog"
        @click=${() => { app.help = true; app.changed(); }}>?</button>
    </header>`;
  }

  private follow(s: Session): TemplateResult {
    const { app } = this;
    const unit = s.view.axis === "insn" ? [[1e4, "newest 10 k"], [1e6, "newest 1 M"], [1e8, "newest 100 M"]] as const
      : [[1e6, "newest 1 ms"], [1e9, "newest 1 s"], [1e10, "newest 10 s"]] as const;
    const on = app.following !== undefined;
    const other = app.following !== undefined && app.following > 0
      && !unit.some(([n]) => n === app.following) ? app.following : undefined;
    return html`<div class="followbox">
      <button class="follow ${on ? "on" : ""}" aria-pressed=${on} title="Follow the live edge (F)"
        @click=${() => app.follow(on ? undefined : 0)}>${on ? "Following" : "Follow"}</button>
      <select aria-label="How to follow" .value=${String(app.following ?? "off")}
        @change=${(e: Event) => {
    const value = (e.target as HTMLSelectElement).value;
    app.follow(value === "off" ? undefined : Number(value));
  }}>
        <option value="off" ?selected=${!on}>off</option>
        <option value="0" ?selected=${app.following === 0}>keep zoom</option>
        ${other === undefined ? nothing : html`<option value=${other} selected>newest ${widthText(s, other)}</option>`}
        ${unit.map(([n, text]) => html`<option value=${n} ?selected=${app.following === n}>${text}</option>`)}
      </select></div>`;
  }

  private search(s: Session): TemplateResult {
    const { app } = this;
    const offers = this.listed ? suggestions(app.searchText, s.names.filter((n) => n), 8) : [];
    const found = s.found;
    const take = (text: string): void => {
      this.listed = false;
      this.marked = -1;
      app.lookFor(text);
    };
    const key = (e: KeyboardEvent): void => {
      if (e.key === "Enter") {
        e.preventDefault();
        const offer = offers[this.marked];
        if (offer !== undefined) take(offer);
        else if (found?.text === app.searchText.trim() && found.list.hits.length > 0) {
          void app.finder.next(e.shiftKey ? -1 : 1);
        } else take(app.searchText.trim());
      } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
        if (offers.length === 0) return;
        e.preventDefault();
        const by = e.key === "ArrowDown" ? 1 : -1;
        this.marked = (this.marked + by + offers.length + (this.marked < 0 && by < 0 ? 1 : 0))
          % offers.length;
        app.changed();
      } else if (e.key === "Escape") {
        if (this.listed && offers.length > 0) this.listed = false;
        else this.leave();
        app.changed();
      }
    };
    return html`<search class="search">
      <input ${ref((e) => { this.input = e as HTMLInputElement | undefined; })} type="text" spellcheck="false" autocomplete="off"
        role="combobox" aria-expanded=${offers.length > 0} aria-controls="offers"
        aria-autocomplete="list" aria-label="Search in all lanes"
        aria-activedescendant=${this.marked >= 0 && offers.length > 0 ? `offer-${this.marked}` : nothing}
        placeholder="Function, address, event, #instruction, 12.5 ms"
        .value=${app.searchText} @keydown=${key}
        @input=${(e: InputEvent) => {
    app.searchText = (e.target as HTMLInputElement).value;
    this.listed = true;
    this.marked = -1;
    app.changed();
  }} @blur=${() => { setTimeout(() => { this.listed = false; app.changed(); }, 150); }}>
      <span class="hits">${!found ? html`<kbd>/</kbd>` : found.list.error !== "" ? "!"
    : found.list.running && found.list.hits.length === 0 ? "…" : found.list.position}</span>
      <div id="offers" role="listbox" aria-label="Suggestions" ?hidden=${offers.length === 0}>
        ${offers.map((text, i) => html`<div id=${`offer-${i}`} role="option" aria-selected=${i === this.marked}
          @pointerdown=${(e: Event) => { e.preventDefault(); take(text); }}>${text}</div>`)}
      </div>
    </search>`;
  }
}
