// SPDX-License-Identifier: MIT
// Paints at most once per frame, and only when something has changed.

const LONGEST_MS = 500;

export class Frames {
  private frame = 0;
  private askedAt = 0; // ms: when the frame was requested
  private pointed = true; // only the pointer has moved since the last frame
  private lately = 0; // ms

  /** `paint` is called once per frame; `pointed`: only the pointer has moved. */
  constructor(private readonly paint: (pointed: boolean) => void) {}

  changed(): void {
    this.pointed = false;
    this.schedule();
  }

  /** The pointer has moved over the timeline. */
  hovered(): void {
    this.schedule();
  }

  /** Recent duration of a frame from its request to its end in milliseconds, dominated by
   * slow ones. */
  get ms(): number {
    return this.lately;
  }

  /** Draw pending changes now: for input that depends on what is shown, such as keys. */
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

/** Tells the first call in a frame from further ones: all drawing of a frame is done in one go. */
export class Frame {
  private within = false;

  /** `ended` is called once the frame is drawn. */
  constructor(private readonly ended: () => void = () => {}) {}

  begins(): boolean {
    if (this.within) return false;
    this.within = true;
    queueMicrotask(() => {
      this.within = false;
      this.ended();
    });
    return true;
  }
}
