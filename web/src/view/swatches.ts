// SPDX-License-Identifier: MIT
// Colours of the functions of a trace: those with the most instructions get the strong ones, by rank,
// so that no two share one; all others a paler one, by name. None depends on the view. Without ranks,
// the name determines the colour.
import {
  functionColour, greyColour, paleColour, palette, type Colour, type Theme,
} from "./palette.ts";

/** Number of functions with a colour of their own: only the first are as far apart as can be. */
export const RANKS = 20;

export class Swatches {
  private readonly ranks = new Map<string, number>();
  private known = false;
  highlight = ""; // the only one with a colour, "": none
  version = 0; // changes with any colour

  forget(): void {
    this.ranks.clear();
    this.known = false;
    this.version++;
  }

  /** Set the hottest functions, hottest first. Those that already have a colour keep it. */
  rank(names: readonly string[]): void {
    const hot = names.slice(0, RANKS);
    for (const name of [...this.ranks.keys()]) if (!hot.includes(name)) this.ranks.delete(name);
    const taken = new Set(this.ranks.values());
    let free = 0;
    for (const name of hot) {
      if (this.ranks.has(name)) continue;
      while (taken.has(free)) free++;
      this.ranks.set(name, free);
      taken.add(free);
    }
    this.known = hot.length > 0;
    this.version++;
  }

  setHighlight(name: string): void {
    this.highlight = name;
    this.version++;
  }

  /** Colour for a trace shown next to this one: functions in both have the same, others get one by
   * name, as their ranks are not known. */
  beside(name: string, theme: Theme): Colour {
    return this.highlight === "" && !this.ranks.has(name) ? functionColour(name, theme) : this.of(name, theme);
  }

  of(name: string, theme: Theme): Colour {
    if (this.highlight !== "" && name !== this.highlight) return greyColour(name, theme);
    // Code without a symbol has an address as name, which has no rank.
    if (!this.known || name.startsWith("0x")) return functionColour(name, theme);
    const rank = this.ranks.get(name);
    if (rank !== undefined) return palette(theme)[rank]!;
    return name === this.highlight ? functionColour(name, theme) : paleColour(name, theme);
  }
}
