// SPDX-License-Identifier: MIT
// What is typed into the search box.
import type { Query } from "./api.ts";

export type Search =
  | { readonly kind: "none" }
  | { readonly kind: "goto"; readonly insn: number }
  | { readonly kind: "query"; readonly query: Query }
  | { readonly kind: "error"; readonly text: string };

/** Those offered; the server knows more, and every kind of gap. */
export const EVENT_KINDS = ["exception", "return", "gap", "overflow", "event", "software", "mode",
  "context", "trace-on", "note"] as const;

/**
 * "#1234" goes to an instruction; "0x…" or "0x…-0x…" is an address or a range of addresses;
 * "event:KIND" an event; anything else the name of a function.
 */
export function parseSearch(input: string): Search {
  const text = input.trim();
  if (text === "") return { kind: "none" };
  if (text.startsWith("#")) {
    const digits = text.slice(1).replace(/[,_\s]/g, "");
    return /^\d{1,15}$/.test(digits) ? { kind: "goto", insn: Number(digits) }
      : { kind: "error", text: "After # an instruction's number is expected." };
  }
  const event = /^event:\s*(\S*)$/i.exec(text);
  if (event) {
    const kind = event[1]!.toLowerCase();
    return /^[a-z-]+$/.test(kind) ? { kind: "query", query: { event: kind } }
      : { kind: "error", text: `Events: ${EVENT_KINDS.join(", ")}.` };
  }
  if (/^0x/i.test(text)) {
    const range = /^0x([0-9a-f]{1,16})(?:\s*[-:]\s*(?:0x)?([0-9a-f]{1,16}))?$/i.exec(text);
    if (!range) return { kind: "error", text: "An address is 0x and up to 16 hexadecimal digits." };
    const from = `0x${range[1]!.toLowerCase()}`;
    const pc = range[2] ? `${from}:0x${range[2].toLowerCase()}` : from;
    return { kind: "query", query: { pc } };
  }
  return { kind: "query", query: { symbol: text } };
}

/** Names to offer for what is typed so far: those that begin with it first. */
export function suggestions(input: string, names: readonly string[], most: number): string[] {
  const text = input.trim().toLowerCase();
  if (text === "" || text.startsWith("#") || text.startsWith("0x")) return [];
  if ("event:".startsWith(text) || text.startsWith("event:")) {
    const kinds = EVENT_KINDS.map((k) => `event:${k}`);
    const found = kinds.filter((k) => k.startsWith(text) && k !== text);
    if (text.startsWith("event:")) return found.slice(0, most);
    if (text.length > 1) return [...found, ...matching(text, names)].slice(0, most);
  }
  return matching(text, names).slice(0, most);
}

function matching(text: string, names: readonly string[]): string[] {
  const begins: string[] = [];
  const within: string[] = [];
  for (const name of names) {
    const at = name.toLowerCase().indexOf(text);
    if (at === 0) begins.push(name);
    else if (at > 0) within.push(name);
  }
  return [...begins, ...within];
}
