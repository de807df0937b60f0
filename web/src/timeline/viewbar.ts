// SPDX-License-Identifier: MIT
// The bar above the lanes, with words for what is done to the view as a whole: the axis, where times count from,
// from where to where it goes, and zooming.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { hasTime } from "../data/model.ts";
import { setFolds } from "../view/folding.ts";
import { ViewField } from "./viewfield.ts";
import type { Axis } from "../base/scale.ts";
import type { Session } from "../view/session.ts";

export class ViewBar {
  readonly field: ViewField;

  constructor(private readonly app: App, leave: () => void, private readonly fold: () => void) {
    this.field = new ViewField(app, leave);
  }

  view(s: Session): TemplateResult {
    return html`${this.axes(s)}${s.view.axis === "time" ? this.clock() : nothing}${this.field.view(s)}${this.zooms(s)}`;
  }

  private axes(s: Session): TemplateResult {
    const axis = (of: Axis, text: string, title: string): TemplateResult => html`<button
      class=${s.axis === of ? "on" : ""} aria-pressed=${s.axis === of} title=${title}
      ?disabled=${of === "time" && !hasTime(s.trace)} @click=${() => this.app.chooseAxis(of)}>${text}</button>`;
    return html`<div class="segmented" role="group" aria-label="Axis">
      ${axis("time", "Time", "Time, where the trace has timestamps (T)")}${axis("insn", "Instructions", "Instruction number (T)")}</div>`;
  }

  private zooms(s: Session): TemplateResult {
    const { app } = this;
    const button = (text: string, title: string, act: () => void): TemplateResult => html`<button class="action" title=${title} @click=${act}>${text}</button>`;
    return html`<div class="zooms" role="group" aria-label="Zoom">
      ${button("Zoom in", "At the cursor, or the middle (+, or W at the pointer; Ctrl wheel; pinch)", () => app.zoomBy(0.5))}
      ${button("Zoom out", "(−, or S at the pointer)", () => app.zoomBy(2))}
      ${button("Fit", "The selection, or the call at the cursor; again: its caller, at last the lane (Z)", () => void app.frame())}
      ${button("Whole", "The whole trace (0)", () => app.showWhole())}
      ${s.view.axis === "insn" ? nothing : s.view.folds ? button("Unfold", "Show folded time again (Shift X); more is folded by X, one seam is opened by a click", () => setFolds(app, []))
    : button("Fold", "Fold empty time in view away (X)", this.fold)}</div>`;
  }

  private clock(): TemplateResult {
    const { app } = this;
    return html`<button class="action clock" aria-pressed=${app.clock}
      title=${app.clock ? "Times are those of the trace's clock: count from its start again" : "Times count from the trace's start: show those of its clock"}
      @click=${() => app.toggleClock()}>Clock</button>`;
  }
}
