// SPDX-License-Identifier: MIT
// Parses the text in the search box. The server understands everything except "#1234" and times.
export type Search =
  | { readonly kind: "none" }
  | { readonly kind: "goto"; readonly insn: number }
  | { readonly kind: "time"; readonly at: bigint; readonly ns: boolean } // else ticks
  | { readonly kind: "query"; readonly text: string }
  | { readonly kind: "error"; readonly text: string };

/** Suggested kinds; the server knows more, and every kind of gap. */
export const EVENT_KINDS = ["exception", "return", "gap", "overflow", "event", "software", "mode",
  "context", "trace-on", "note"] as const;

const UNITS: Readonly<Record<string, number>> = { tick: 0, ns: 0, us: 3, "µs": 3, "μs": 3, ms: 6, s: 9 };

/** "12.5 ms", also as the page writes times: "1,000.802 347 ms". */
export function parseTime(text: string): (Search & { kind: "time" }) | undefined {
  const [, int, part = "", unit] = /^(\d[\d,\s]*)(?:\.([\d\s]*))?\s*(ticks?|[num\u00b5\u03bc]?s)$/i.exec(text) ?? [];
  if (int === undefined || unit === undefined) return undefined;
  const name = unit.toLowerCase().replace("ticks", "tick");
  const decimals = part.replace(/\s/g, "").padEnd(9, "0").slice(0, UNITS[name]);
  return { kind: "time", at: BigInt(int.replace(/[,\s]/g, "") + decimals), ns: name !== "tick" };
}

/** "#1234" goes to an instruction, "12.5 ms" to a time; anything else is searched for. */
export function parseSearch(input: string): Search {
  const text = input.trim();
  if (text === "") return { kind: "none" };
  const time = parseTime(text);
  if (time) return time;
  if (!text.startsWith("#")) return { kind: "query", text };
  const digits = text.slice(1).replace(/[,_\s]/g, "");
  return /^\d{1,15}$/.test(digits) ? { kind: "goto", insn: Number(digits) }
    : { kind: "error", text: "Type an instruction number after #." };
}

/** Edit distance with transpositions; `most` + 1 if it is more than `most`. */
export function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let [before, last, row]: number[][] = [[], [], Array.from({ length: b.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= a.length; i++) {
    [before, last, row] = [last!, row!, [i]];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
  }
  return Math.min(row![b.length]!, most + 1);
}

/** Similar names, nearest first. */
export function nearNames(input: string, names: readonly string[], most: number): string[] {
  const text = input.trim().toLowerCase().replace(/^(call|symbol):/, "").replace(/\+0x[0-9a-f]*$/, "");
  if (text.length < 2) return [];
  const far = Math.max(1, Math.floor(text.length / 3));
  const bare = (name: string): string => name.toLowerCase().replace(/^_+/, "");
  return [...new Set(names)]
    .map((name) => ({ name, far: Math.min(distance(text, name.toLowerCase(), far), distance(text, bare(name), far)) }))
    .filter((n) => n.far <= far).sort((a, b) => a.far - b.far || a.name.localeCompare(b.name))
    .slice(0, most).map((n) => n.name);
}

/** Suggestions for the text typed so far: names that begin with it first. */
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
