// SPDX-License-Identifier: MIT
// One paint a frame, when something has changed.

const LONGEST_MS = 500;

export class Frames {
  private frame = 0;
  private askedAt = 0; // ms: when that frame was asked for
  private pointed = true; // nothing but the pointer has moved since the last frame
  private lately = 0; // ms

  /** `paint` is called once a frame; `pointed`: nothing but the pointer has moved. */
  constructor(private readonly paint: (pointed: boolean) => void) {}

  changed(): void {
    this.pointed = false;
    this.schedule();
  }

  /** The pointer has moved over the timeline. */
  hovered(): void {
    this.schedule();
  }

  /** How long a frame takes from being asked for to its end, lately: milliseconds, above all those of slow ones. */
  get ms(): number {
    return this.lately;
  }

  /** Draw now what has changed: for who acts on what is shown, as keys do. */
  flush(): void {
    if (this.frame === 0 || this.pointed) return;
    cancelAnimationFrame(this.frame);
    this.show();
  }

  private schedule(): void {
    if (this.frame !== 0) return;
    this.askedAt = performance.now();
    this.frame = requestAnimationFrame(() => this.show());
  }

  private show(): void {
    const { pointed } = this;
    this.frame = 0;
    this.pointed = true;
    this.paint(pointed);
    this.lately = Math.min(LONGEST_MS, Math.max(performance.now() - this.askedAt, 0.9 * this.lately));
  }
}
