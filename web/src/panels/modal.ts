// SPDX-License-Identifier: MIT
// A dialog over the page. It ends by Escape, a click beside it, or an element with the class "shut"; the
// focus goes back to where it was.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";

/** What a press of the pointer began on: one that began within is no click beside, wherever it ends. */
let pressed: EventTarget | null = null;
const press = (e: Event): void => { pressed = e.target; };

/** One function for all, so that it is called once for a dialog: one that was closed stays so. */
const show = (e: Element | undefined): void => {
  if (e) queueMicrotask(() => { if (e.isConnected) (e as HTMLDialogElement).showModal(); });
};

export function modal(cls: string, title: string, body: unknown, closed: () => void): TemplateResult {
  const shut = (e: Event): void => {
    const dialog = e.currentTarget as HTMLDialogElement;
    const beside = e.target === dialog && pressed === dialog;
    if (beside || (e.target as Element).closest(".shut")) dialog.close();
  };
  return html`<dialog class="help ${cls}" aria-labelledby="dialog-title" @close=${closed} @pointerdown=${press} @click=${shut} ${ref(show)}>
    <div class="helpbody"><h2 id="dialog-title">${title}</h2>${body}</div></dialog>`;
}
