// SPDX-License-Identifier: MIT

/** A single action to be done later, once: at the earliest of the requested times. */
export class Later {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private due = 0; // ms

  constructor(private readonly act: () => void) {}

  within(ms: number): void {
    const due = performance.now() + ms;
    if (this.timer !== undefined && this.due <= due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.act();
    }, ms);
  }

  get pending(): boolean {
    return this.timer !== undefined;
  }

  cancel(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
