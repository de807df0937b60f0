// SPDX-License-Identifier: MIT
// A dialog over the page. Escape, a click outside it, or an element with the class "shut" closes
// it; the focus then returns to where it was.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";

/** Target of the pointer press: one that began inside is not a click outside, wherever it ends. */
let pressed: EventTarget | null = null;
const press = (e: Event): void => { pressed = e.target; };

/** A single function, so that it is called once per dialog: a closed one stays closed. */
const show = (e: Element | undefined): void => {
  if (e) queueMicrotask(() => {
    if (!e.isConnected) return;
    (e as HTMLDialogElement).showModal();
    e.scrollTop = 0; // what takes the focus may be at the end of a long text
  });
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
