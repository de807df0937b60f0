// SPDX-License-Identifier: MIT
// A question to the server that a panel asks while it is drawn: once, until it is another one.

export interface Asked<T> {
  readonly key: string;
  readonly abort: AbortController;
  answer: T | undefined;
  error: string;
}

/** `last` if that is what was asked last; else it is given up, and `run` asks. */
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
