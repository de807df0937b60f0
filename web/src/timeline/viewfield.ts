// SPDX-License-Identifier: MIT
// The field that tells from where to where the view goes, and takes what people type instead.
import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import * as api from "../data/api.ts";
import type { App } from "../view/app.ts";
import { absolute, since } from "../base/epoch.ts";
import { whyNoTime } from "../view/find.ts";
import { grouped, roundTime } from "../base/format.ts";
import { callView } from "../view/framing.ts";
import { timeIsNs, type Hit } from "../data/model.ts";
import { parseRange, type Spot, type Wish } from "../view/range.ts";
import { centre, span } from "../base/scale.ts";
import { nearNames } from "../view/search.ts";
import type { Session } from "../view/session.ts";

/** Why a place cannot be shown, for people. */
class Nowhere extends Error {}

/** Digits are left out that a view of so many parts does not show. */
const PARTS = 1000;

/** A place on the axis, with what was found there. */
interface Found {
  readonly at: number;
  readonly hit?: Hit;
}

function positionText(s: Session, at: number, step: number): string {
  if (s.view.axis === "insn") return grouped(Math.round(at));
  const n = absolute(s.trace.epoch, at) - s.zero;
  const unit = BigInt(10 ** Math.max(0, Math.floor(Math.log10(step))));
  const rounded = ((n + unit / 2n) / unit) * unit;
  return rounded === 0n ? "0" : timeIsNs(s.trace) ? roundTime(rounded) : `${grouped(rounded)} ticks`;
}

/** "59.7 ms – 59.9 ms": what of the trace is in view. */
export function viewText(s: Session): string {
  const step = span(s.view) / PARTS;
  const inside = (at: number): number => Math.min(Math.max(at, s.extent.first), s.extent.last);
  return `${positionText(s, inside(s.view.from), step)} – ${positionText(s, inside(s.view.to), step)}`;
}

export class ViewField {
  private input: HTMLInputElement | undefined;
  private text: string | undefined; // while something is typed
  private trouble = "";
  private looking = false;

  constructor(private readonly app: App, private readonly leave: () => void) {}

  focus(): void {
    this.input?.focus();
    this.input?.select();
  }

  view(s: Session): TemplateResult {
    const { app } = this;
    const key = (e: KeyboardEvent): void => {
      if (e.key !== "Enter" && e.key !== "Escape") return;
      e.preventDefault();
      e.stopPropagation();
      if (e.key === "Enter") void this.go(s, this.text ?? viewText(s));
      else this.done();
    };
    return html`<div class="viewfield"><input ${ref((e) => { this.input = e as HTMLInputElement | undefined; })} type="text" spellcheck="false" autocomplete="off"
        aria-label="In view: from – to" aria-invalid=${this.trouble !== ""} aria-describedby=${this.trouble === "" ? nothing : "viewfield-trouble"}
        title="From – to: 1.5ms, 59.7ms:+200us, 1K:2K instructions, a function, an event (R)" .value=${this.text ?? viewText(s)}
        @keydown=${key} @input=${(e: InputEvent) => { this.text = (e.target as HTMLInputElement).value; this.trouble = ""; app.changed(); }}
        @focus=${(e: Event) => (e.target as HTMLInputElement).select()}
        @blur=${() => { if (!this.looking && this.trouble === "") this.text = undefined; app.changed(); }}>
      ${this.trouble === "" ? nothing : html`<p class="trouble" id="viewfield-trouble" role="alert">${this.trouble}</p>`}</div>`;
  }

  private done(): void {
    this.text = undefined;
    this.trouble = "";
    this.leave();
    this.app.changed();
  }

  private async go(s: Session, text: string): Promise<void> {
    this.looking = true;
    this.trouble = "";
    try {
      await this.show(s, parseRange(text, (name) => s.names.includes(name)));
      if (this.app.session === s) this.done();
    } catch (error) {
      this.trouble = error instanceof Nowhere ? error.message : `That could not be looked up: ${(error as Error).message}`;
    } finally {
      this.looking = false;
      this.app.changed();
    }
  }

  // ---- places ------------------------------------------------------------------------------

  private async show(s: Session, wish: Wish): Promise<void> {
    const { app } = this;
    const { axis } = s.view;
    if (wish.kind === "error") throw new Nowhere(wish.text);
    if (wish.kind === "whole") {
      app.showWhole();
    } else if (wish.kind === "spot") {
      const found = await this.find(s, wish.at, undefined);
      app.jumps();
      if (found.hit) {
        app.goToIn(found.hit.stream, found.hit.insn, found.hit.time);
        s.depth = undefined;
        const call = await callView(s, found.hit.insn, undefined);
        app.setView(call?.view ?? centre(s.view, found.at, s.extent));
      } else {
        app.setView(centre(s.view, found.at, s.extent));
        app.moveCursor(found.at);
      }
    } else {
      const from = wish.from ? (await this.find(s, wish.from, undefined)).at : s.extent.first;
      const to = wish.to === undefined ? s.extent.last : wish.length ? await this.after(s, from, wish.to) : (await this.find(s, wish.to, from)).at;
      if (to <= from) throw new Nowhere("There is nothing between these places.");
      if (to <= s.extent.first || from >= s.extent.last) throw new Nowhere(`The trace goes from ${positionText(s, s.extent.first, 1)} to ${positionText(s, s.extent.last, 1)}.`);
      app.jumps();
      app.setView({ axis, from, to });
    }
    app.say(`In view: ${viewText(s)}.`);
  }

  /** A place on the axis; a name is looked for after `after`, or the cursor. */
  private async find(s: Session, spot: Spot, after: number | undefined): Promise<Found> {
    if (spot.kind === "name") return this.search(s, spot.text, after);
    if (spot.kind === "insn") return { at: await this.convert(s, "insn", spot.at) };
    const why = whyNoTime(s, spot.ns);
    if (why !== "") throw new Nowhere(why);
    return { at: await this.convert(s, "time", since(s.trace.epoch, spot.at + s.zero)) };
  }

  /** The place at a distance from another. */
  private async after(s: Session, from: number, length: Spot): Promise<number> {
    if (length.kind === "name") throw new Nowhere(`“${length.text}” is no length.`);
    const unit = length.kind === "time" ? "time" : "insn";
    const why = length.kind === "time" ? whyNoTime(s, length.ns) : "";
    if (why !== "") throw new Nowhere(why);
    if (unit === s.view.axis) return from + Number(length.at);
    const begin = await this.locate(s, s.view.axis, from);
    if (begin.time === undefined) throw new Nowhere(`Lane ${s.stream!.name} has no time there.`);
    return this.convert(s, unit, (unit === "time" ? begin.time : begin.insn) + Number(length.at));
  }

  private locate(s: Session, unit: "insn" | "time", at: number): ReturnType<typeof api.locate> {
    if (!s.stream) throw new Nowhere("This trace has no lane yet.");
    return api.locate(s.trace, s.stream.name, unit, Math.max(0, at));
  }

  /** A position on the view's axis, by the selected lane. */
  private async convert(s: Session, unit: "insn" | "time", at: number): Promise<number> {
    if (unit === s.view.axis) return at;
    const last = s.stream ? s.stream.insns - 1 : 0;
    if (unit === "insn" && at > last) throw new Nowhere(`Lane ${s.stream?.name ?? ""} has ${grouped(last + 1)} instructions.`);
    const position = await this.locate(s, unit, at);
    const there = unit === "insn" ? position.time : position.insn;
    if (there === undefined) throw new Nowhere(`Lane ${s.stream!.name} has no time there.`);
    return there;
  }

  /** The next of what was typed after a place, or the first of all; in the selected lane, otherwise in any. */
  private async search(s: Session, text: string, after: number | undefined): Promise<Found> {
    const near = after === undefined ? await this.app.finder.spot(s) : s.stream && { stream: s.stream.name, insn: (await this.locate(s, s.view.axis, after)).insn };
    for (const where of [near?.stream, undefined]) {
      for (const from of [near, undefined]) {
        const { hits: [hit] } = await api.find(s.trace, { q: text }, { near: from, limit: 1 }, where);
        if (!hit || (after !== undefined && from === undefined)) continue;
        const at = s.view.axis === "insn" ? hit.insn : hit.time;
        if (at === undefined) throw new Nowhere(`“${text}” is in lane ${hit.stream}, which has no times.`);
        return { at, hit };
      }
    }
    const names = nearNames(text, s.names.filter((n) => n), 3);
    throw new Nowhere(after !== undefined ? `There is no “${text}” after the begin.`
      : `Nothing is called “${text}”.${names.length > 0 ? ` Did you mean ${names.join(", ")}?` : ""}`);
  }
}
