// SPDX-License-Identifier: MIT
// Keeps the URL what is shown. A jump becomes a new entry of the browser's history, so that Back undoes it; all else
// changes the present entry.

/** What moves changes the URL once it rests for so long. */
const URL_MS = 60;

export class Address {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private jumped = false; // since it was last written
  private known = location.hash; // as it was written or read last

  /** `hash`: of what is shown, undefined if that has no URL of its own; `written` is called after each write. */
  constructor(private readonly hash: () => string | undefined, private readonly written: () => void) {}

  /** Is it behind what is shown? */
  get pending(): boolean {
    return this.timer !== undefined;
  }

  /** Something that is part of it has changed. */
  moved(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.write();
      this.written();
    }, URL_MS);
  }

  /** Call it before a jump; what changes at once afterwards is the same jump. */
  jumps(): void {
    if (this.jumped) return;
    if (this.pending) this.write();
    this.jumped = true;
  }

  /** The browser went elsewhere. */
  forget(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.jumped = false;
    this.known = location.hash;
  }

  private write(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const hash = this.hash();
    // Another one is there already, and will be shown.
    if (location.hash !== this.known) return;
    if (hash === undefined || hash === location.hash) return;
    if (this.jumped) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
    this.known = location.hash;
    this.jumped = false;
  }
}
