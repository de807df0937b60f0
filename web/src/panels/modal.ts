// SPDX-License-Identifier: MIT
// A dialog over the page. It ends by Escape, a click beside it, or an element with the class "shut"; the
// focus goes back to where it was.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";

export function modal(cls: string, title: string, body: unknown, closed: () => void): TemplateResult {
  const shut = (e: Event): void => {
    const dialog = e.currentTarget as HTMLDialogElement;
    if (e.target === dialog || (e.target as Element).closest(".shut")) dialog.close();
  };
  return html`<dialog class="help ${cls}" aria-labelledby="dialog-title" @close=${closed} @click=${shut}
    ${ref((e) => { const d = e as HTMLDialogElement | undefined; if (d && !d.open) queueMicrotask(() => d.isConnected && !d.open && d.showModal()); })}>
    <div class="helpbody"><h2 id="dialog-title">${title}</h2>${body}</div></dialog>`;
}
