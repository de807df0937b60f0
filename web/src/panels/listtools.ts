// SPDX-License-Identifier: MIT
// Actions on traces in the list. Their dialogs are loaded when the first of them is opened.
import { nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { Trace } from "../data/model.ts";
import { later } from "./lazy.ts";
import type { ListDialogs } from "./listdialogs.ts";

export class ListTools {
  private dialogs: ListDialogs | undefined;
  dragging = false;

  constructor(private readonly app: App) {}

  editLabels(trace: Trace): void {
    void this.open((dialogs) => dialogs.editLabels(trace));
  }

  askDelete(trace: Trace): void {
    void this.open((dialogs) => dialogs.askDelete(trace));
  }

  bring(file?: File): void {
    void this.open((dialogs) => dialogs.bring(file));
  }

  private async open(show: (dialogs: ListDialogs) => void): Promise<void> {
    try {
      this.dialogs ??= new (await later()).ListDialogs(this.app);
      show(this.dialogs);
    } catch (error) {
      this.app.say(`${(error as Error).message}: reload the page.`);
    }
  }

  /** Handlers for files dropped onto the page. */
  readonly drop = {
    over: (e: DragEvent): void => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault();
      if (this.dragging) return;
      this.dragging = true;
      this.app.changed();
    },
    leave: (e: DragEvent): void => {
      if (e.relatedTarget && (e.currentTarget as Element).contains(e.relatedTarget as Node)) return;
      this.dragging = false;
      this.app.changed();
    },
    drop: (e: DragEvent): void => {
      e.preventDefault();
      this.dragging = false;
      const file = e.dataTransfer?.files[0];
      if (file) this.bring(file);
      this.app.changed();
    },
  };

  view(): TemplateResult | typeof nothing {
    return this.dialogs?.view() ?? nothing;
  }
}
