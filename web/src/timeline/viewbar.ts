// SPDX-License-Identifier: MIT
// The bar above the lanes, with words for what is done to the view as a whole: the axis and where times count from.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../app.ts";
import { hasTime } from "../model.ts";
import type { Axis } from "../scale.ts";
import type { Session } from "../session.ts";

export class ViewBar {
  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    return html`${this.axes(s)}${s.view.axis === "time" ? this.clock() : nothing}`;
  }

  private axes(s: Session): TemplateResult {
    const axis = (of: Axis, text: string, title: string): TemplateResult => html`<button
      class=${s.view.axis === of ? "on" : ""} aria-pressed=${s.view.axis === of} title=${title}
      ?disabled=${of === "time" && !hasTime(s.trace)} @click=${() => this.app.chooseAxis(of)}>${text}</button>`;
    return html`<div class="segmented" role="group" aria-label="Axis">
      ${axis("time", "Time", "Time, where the trace has timestamps (T)")}${axis("insn", "Instructions", "Instruction number (T)")}</div>`;
  }

  private clock(): TemplateResult {
    const { app } = this;
    return html`<button class="action clock" aria-pressed=${app.clock}
      title=${app.clock ? "Times are those of the trace's clock: count from its start again" : "Times count from the trace's start: show those of its clock"}
      @click=${() => app.toggleClock()}>Clock</button>`;
  }
}
