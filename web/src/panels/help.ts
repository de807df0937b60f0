// SPDX-License-Identifier: MIT
// The page of keys, made from the table of keys.
import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { logOut } from "../api.ts";
import { GROUPS, shownKeys } from "../keys.ts";

const MOUSE = [
  ["Wheel", "Go along the axis, or through the lanes"],
  ["Ctrl wheel", "Zoom at the pointer"],
  ["Drag", "Move the view"],
  ["Shift drag", "Select a range; also by a drag on the ruler"],
  ["Click", "Set the cursor"],
  ["Double click", "Zoom in; on the overview: the whole trace"],
] as const;

export function helpDialog(close: () => void): TemplateResult {
  return html`<dialog class="help" aria-labelledby="help-title" @close=${close}
    @click=${(e: Event) => { if (e.target === e.currentTarget) close(); }}
    ${ref((e) => { const d = e as HTMLDialogElement | undefined; if (d && !d.open) queueMicrotask(() => d.isConnected && !d.open && d.showModal()); })}>
    <div class="helpbody">
    <h2 id="help-title">Keys and mouse</h2>
    <div class="columns">
      ${GROUPS.map((g) => html`<section><h3>${g.title}</h3><dl>${g.commands.map((c) => html`<div>
        <dt>${shownKeys(c.command).map((k) => html`<kbd>${k}</kbd>`)}</dt><dd>${c.text}</dd></div>`)}</dl></section>`)}
      <section><h3>Mouse</h3><dl>${MOUSE.map(([k, text]) => html`<div><dt><kbd>${k}</kbd></dt><dd>${text}</dd></div>`)}</dl></section>
    </div>
    <p class="muted">Letters are by place on the keyboard, so they are under the same fingers on every layout.
      <a href="licenses.txt">Licences</a></p>
    ${localStorage.getItem("tracelake.loggedIn") ? html`<button class="action" @click=${() => { localStorage.removeItem("tracelake.loggedIn"); void logOut(); }}>Log out</button>` : nothing}
    <button class="action" @click=${close} autofocus>Close</button>
    </div>
  </dialog>`;
}
