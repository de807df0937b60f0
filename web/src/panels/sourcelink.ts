// SPDX-License-Identifier: MIT
// A short description of an instruction's source location.
import { html, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { InsnRow } from "../data/model.ts";

/** "kernel.c:120" of "/firmware/src/kernel.c". */
export function shortPlace(file: string, line: number): string {
  const name = file.slice(file.lastIndexOf("/") + 1);
  return line > 0 ? `${name}:${line}` : name;
}

/** The innermost function first: "mix, inlined in schedule". */
export function inlinedText(row: InsnRow): string {
  return row.inlined.length === 0 ? ""
    : `${row.inlined.map((i) => i.fn || "?").reverse().join(", inlined in ")}, inlined in ${row.fn || "?"}`;
}

export function sourceLink(app: App, row: InsnRow): TemplateResult {
  return html`<button class="plain link" title=${row.file} @click=${() => app.setPanel("source")}
    >${shortPlace(row.file, row.line)}</button>${row.inlined.length > 0
    ? html` <span class="muted">${inlinedText(row)}</span>` : ""}`;
}
