// SPDX-License-Identifier: MIT
// Questions in SQL about the open trace: the server answers with a table.
import { ApiError, get, limited, reason, tracePath } from "./api.ts";
import { meant, visible } from "../base/visible.ts";

/** A number from 2^53 on is a string of decimals, as the server sends it. */
export type Cell = string | number | null;

export interface Answer {
  readonly columns: readonly { readonly name: string; readonly kind: string }[]; // kind: integer, real or text
  readonly rows: readonly (readonly Cell[])[];
  readonly truncated: boolean; // there are more rows
}

/** Throws with SQLite's reason if the question is wrong. */
export async function question(trace: string, text: string, signal: AbortSignal): Promise<Answer> {
  const reply = await get(`${tracePath(trace)}/sql`, { method: "POST", body: meant(text), signal: limited(signal) });
  if (!reply.ok) throw new ApiError(reply.status, await reason(reply));
  return JSON.parse(visible(await reply.text())) as Answer;
}

/** A text as a constant of SQL. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The range of positions that calls begin in, as a condition. */
export function within(range: readonly [number, number] | undefined): string {
  return range ? ` AND position >= ${range[0]} AND position < ${range[1]}` : "";
}
