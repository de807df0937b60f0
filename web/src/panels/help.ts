// SPDX-License-Identifier: MIT
// The page of keyboard shortcuts, generated from the table of keys.
import { html, nothing, type TemplateResult } from "lit-html";
import { logOut } from "../data/api.ts";
import { GROUPS, shownKeys } from "../view/keys.ts";
import { hasRings, privilegeName } from "../data/model.ts";
import { modal } from "./modal.ts";

const MOUSE = [
  ["Wheel", "Pan along the axis, or scroll the lanes"],
  ["Ctrl wheel, pinch", "Zoom at the pointer"],
  ["Drag", "Move the view"],
  ["Shift drag", "Measure: select a range, snapping to edges (Alt: no snapping); or drag on the ruler"],
  ["Click", "Set the cursor"],
  ["Double click", "Zoom in; on the overview strip: show the whole trace"],
] as const;

const LANE = [
  ["exception", "exception or interrupt"], ["event", "hardware event"], ["software", "software trace"],
  ["lost", "trace lost: overflow, bad packet"], ["noimage", "no program image there"],
  ["off", "tracing off, or not yet synchronised"], ["out", "switched out: the thread did not run"], ["behind", "being indexed: looking there has it done first"], ["fn", "functions, stacked by share of instructions: the hottest in strong colours of their own, all others paler"],
  ["mixed", "many functions"], ["density", "branches per instruction"], ["depth", "depth of the call stack"],
] as const;

function legend(protocol: string): TemplateResult {
  const key = (cls: string, text: string): TemplateResult => html`<li><span class=${`key ${cls}`}></span>${text}</li>`;
  return html`<section><h3>How to read a lane</h3><ul class="legend">${LANE.map(([cls, text]) => key(cls, text))}
    ${[0, 1, 2, 3].map((p) => key(`p${hasRings(protocol) ? 3 - p : p}`, `running at ${privilegeName(protocol, p)}`))}</ul></section>`;
}

/** `protocol`: of the selected lane, whose modes are explained; "": none. */
export function helpDialog(protocol: string, close: () => void): TemplateResult {
  return modal("", protocol !== "" ? "Lanes, keys and mouse" : "Keys and mouse", html`<div class="columns">
      ${GROUPS.map((g) => html`<section><h3>${g.title}</h3><dl>${g.commands.map((c) => html`<div>
        <dt>${shownKeys(c.command).map((k) => html`<kbd>${k}</kbd>`)}</dt><dd>${c.text}</dd></div>`)}</dl></section>`)}
      <section><h3>Mouse</h3><dl>${MOUSE.map(([k, text]) => html`<div><dt><kbd>${k}</kbd></dt><dd>${text}</dd></div>`)}</dl></section>
      ${protocol !== "" ? legend(protocol) : nothing}
    </div>
    <p class="muted">Letter keys are bound to positions on the keyboard, so they are the same physical keys on every layout.
      <a href="licenses.txt">Licences</a></p>
    ${localStorage.getItem("tracelake.loggedIn") ? html`<button class="action" @click=${() => { localStorage.removeItem("tracelake.loggedIn"); void logOut(); }}>Log out</button>` : nothing}
    <button class="action shut" autofocus>Close</button>`, close);
}
