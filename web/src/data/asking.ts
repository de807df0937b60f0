// SPDX-License-Identifier: MIT
// A request that a panel makes while it is drawn: sent once, and again only when the request
// changes.

export interface Asked<T> {
  readonly key: string;
  readonly abort: AbortController;
  answer: T | undefined;
  error: string;
}

/** Return `last` if it has the same key; otherwise abort it, and start `run`. */
export function ask<T>(
  last: Asked<T> | undefined, key: string, run: (signal: AbortSignal) => Promise<T>, changed: () => void,
): Asked<T> {
  if (last?.key === key) return last;
  last?.abort.abort();
  const asked: Asked<T> = { key, abort: new AbortController(), answer: undefined, error: "" };
  run(asked.abort.signal).then((answer) => { asked.answer = answer; }, (error: unknown) => {
    if (!asked.abort.signal.aborted) asked.error = (error as Error).message;
  }).finally(changed);
  return asked;
}
