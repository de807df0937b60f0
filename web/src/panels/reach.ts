// SPDX-License-Identifier: MIT
// What panels have in common: going to what they tell of, and writing how long it took.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { CallInfo } from "../data/calls.ts";
import { bounded, duration, estimated, grouped, short } from "../base/format.ts";
import type { Session } from "../view/session.ts";
import type { Bounded } from "../data/timing.ts";

/** Reasons for gaps in words. */
export const REASONS: Readonly<Record<string, string>> = {
  sync: "not synchronised", "bad-packet": "bad packet", "no-image": "no program image", "no-path": "no path found",
  off: "tracing off", discard: "discarded", transport: "lost in transport",
  "switched-out": "switched out",
};

/** Select a range, in units of the axis, and show it with as much on both sides. */
export function showRange(app: App, from: number, to: number): void {
  const axis = app.session?.view.axis;
  if (axis === undefined) return;
  app.jumps();
  app.setView({ axis, from: 2 * from - to, to: 2 * to - from });
  app.select([from, to]);
}

/** Put the cursor on a call's first instruction, and show all of it. */
export function showCall(app: App, s: Session, c: CallInfo): void {
  const [from, to] = s.view.axis === "insn" ? [c.from, c.to] : [c.timeFrom, c.timeTo];
  if (from !== undefined && to !== undefined) showRange(app, from, Math.max(from + 1, to));
  void app.goTo(c.from, c.timeFrom);
}

/** What has the lane that a length is of. */
type Of = Pick<Session, "stream">;

/** A length of time between two timestamps, or chosen by hand. */
export function exactText(s: Of, n: number): string {
  return boundedText(s, { value: n, least: n, most: n });
}

/** A length of the selected lane: of time, with no more digits than the distance of its timestamps allows, or instructions. */
export function lengthText(s: Of, n: number, timed: boolean): string {
  if (!timed) return n < 1e5 ? `${grouped(n)} insns` : `${short(n)} insns`;
  return boundedText(s, { value: n, least: n, most: n + (s.stream?.timeStep ?? 0) }, estimated);
}

/** Why lengths of the selected lane are estimates. */
export function stepText(s: Of): TemplateResult | typeof nothing {
  const step = s.stream?.timeStep ?? 0;
  return step === 0 ? nothing : html`<p class="muted hint">Timestamps are ${exactText(s, step)} apart: shorter times are estimates.</p>`;
}

/** A duration with its bounds, as far as they matter; by `how`. */
export function boundedText(s: Of, { value, least, most }: Bounded, how = bounded): string {
  return how(value, least, most, (n, digits = 15) => (s.stream?.timeIsNs === false ? `${grouped(Number(n.toPrecision(digits)))} ticks` : duration(n, Math.min(3, digits))));
}

/** A number in a table that leads to the place where it was. */
export function leads(text: string, title: string, go: () => void): TemplateResult {
  return html`<button class="plain link" title=${title} @click=${go}>${text}</button>`;
}
