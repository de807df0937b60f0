// SPDX-License-Identifier: MIT
// Where to begin: links to what is worth a look in a trace, at the head of its overview.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call } from "../data/calls.ts";
import { isSoftware } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { extremes, type Extreme, type Extremes } from "../data/worth.ts";
import { exactText, lengthText, REASONS, showCall, showRange } from "./reach.ts";

const KINDS = { interrupt: "Longest interrupt", call: "Slowest call", gap: "Longest gap" } as const;
const LIMIT_MS = 20000;

export class WorthALook {
  private got: Asked<Extremes> | undefined;
  private wanted = ""; // the trace whose long streams are walked, too

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult | typeof nothing {
    // Of a growing trace it would be another one each time.
    if (s.trace.state !== "sealed" || s.trace.streams.every((x) => x.insns === 0 || isSoftware(x.protocol))) return nothing;
    const { missing, files } = s.overview;
    if (!missing) return nothing;
    const of = `${s.trace.id}/${s.trace.generation}`;
    const all = this.wanted === of;
    // Without the code, calls are no more than guesses: the missing images come first.
    if (!all && missing.length + files.length > 0) return this.onDemand(of);
    this.got = ask(this.got, `${of}/${all}`, (signal) => extremes(s.trace, all, signal), () => this.app.changed());
    const { answer, error } = this.got;
    if (error !== "") return nothing;
    const more = answer?.more ? this.onDemand(of) : nothing;
    if (answer?.found.length === 0) return more;
    return html`<table class="figures worth"><caption>Worth a look</caption><tbody>${answer
      ? answer.found.map((e) => this.row(s, e)) : html`<tr><td class="muted">Looking…</td></tr>`}</tbody></table>${more}`;
  }

  private onDemand(of: string): TemplateResult {
    return html`<p class="buttons"><button class="action" title="Reads all of the longest lanes"
      @click=${() => { this.wanted = of; this.app.changed(); }}>Look for the longest interrupt, the slowest call, the longest gap</button></p>`;
  }

  private row(s: Session, e: Extreme): TemplateResult {
    const of = { stream: s.trace.streams.find((x) => x.name === e.stream) };
    const text = (n: number): string => (e.kind === "gap" && e.timed ? exactText(of, n) : lengthText(of, n, e.timed));
    const name = e.kind === "gap" ? e.reasons.map((r) => REASONS[r] ?? r).join(", ") : [e.name, e.number].filter((x) => x !== undefined && x !== "").join(" ");
    const where = s.trace.streams.length > 1 ? `, ${s.called(e.stream)}` : "";
    const usual = e.usual > 0 ? `, usually ${text(e.usual)}` : "";
    return html`<tr><th scope="row"><button class="plain" title=${`${name}${where}${usual}: go there`} @click=${() => void this.go(s, e)}>${KINDS[e.kind]}
        <span class="muted">${name}${where}</span></button></th>
      <td class="n">${e.kind === "gap" ? "≤ " : ""}${text(e.length)}</td></tr>`;
  }

  private async go(s: Session, e: Extreme): Promise<void> {
    const { app } = this;
    app.selectLane(s.laneOf(e.stream));
    if (e.span) {
      await app.setAxis("time");
      if (app.session === s && s.view.axis === "time") showRange(app, ...e.span);
      return;
    }
    const c = await call(s.trace, e.stream, e.at, undefined, AbortSignal.timeout(LIMIT_MS)).catch(() => undefined);
    if (app.session !== s) return;
    if (c) showCall(app, s, c);
    else void app.goTo(e.at);
  }
}
