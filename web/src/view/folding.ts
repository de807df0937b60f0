// SPDX-License-Identifier: MIT
// Stretches of time that the user has folded away are part of the view; they last until the axis changes, or the live
// edge is followed.
import type { Folds } from "../base/folds.ts";
import { clamp, span, whole } from "../base/scale.ts";
import type { App } from "./app.ts";

/** Leave stretches out of the view, which shows what it did before, or the whole trace if it did. */
export function setFolds(app: App, folds: Folds): void {
  const s = app.session;
  if (!s) return;
  const before = s.view.folds;
  const full = span(s.view) >= span(whole(s.view.axis, s.extent, before)) * 0.999;
  app.jumps();
  app.following = undefined;
  const now = folds.length > 0 ? folds : undefined;
  s.view = full ? whole(s.view.axis, s.extent, now) : clamp({ ...s.view, folds: now }, s.extent);
  const n = folds.length - (before?.length ?? 0);
  app.say(now === undefined ? "No time is folded away." : n > 0 ? `${n} more folded away.` : n < 0 ? `${-n} opened again.` : "No more empty time in view.");
  app.moved();
}
