// SPDX-License-Identifier: MIT
// Names come from other people's programs. Control characters and those that turn the direction of
// the text around them (U+202A to 202E, 2066 to 2069) are shown as their numbers: ⟨U+202E⟩.

const HIDDEN = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]|\\[bf]|\\u00(?:0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])|\\u20(?:2[89a-e]|6[6-9])/i;
const EACH = /\\(?:u([0-9a-f]{4})|[^])|[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/gi;

function named(code: number): string {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** JSON with such characters in its strings made visible; those of layout (tab, end of line) are kept. */
export function visible(json: string): string {
  if (!HIDDEN.test(json)) return json;
  return json.replace(EACH, (found, hex?: string) => {
    if (!HIDDEN.test(found)) return found;
    return named(hex !== undefined ? parseInt(hex, 16) : found === "\\b" ? 8 : found === "\\f" ? 12 : found.charCodeAt(0));
  });
}

/** The characters themselves again, for the server. */
export function meant(text: string): string {
  return text.replace(/⟨U\+([0-9A-F]{4})⟩/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}
