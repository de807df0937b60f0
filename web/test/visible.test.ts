// SPDX-License-Identifier: MIT
// Characters in names that would change how the text around them is shown.
import assert from "node:assert/strict";
import test from "node:test";
import { meant, visible } from "../src/base/visible.ts";

test("control characters and those of direction are shown as numbers, and meant when sent", () => {
  const name = "safe\u202egnp.exe\u0007\b\f\u001b[31m\u007f\u0085\u2066x\u2069\u2028";
  const shown = JSON.parse(visible(JSON.stringify({ [name]: name }))) as Record<string, string>;
  const text = "safe⟨U+202E⟩gnp.exe⟨U+0007⟩⟨U+0008⟩⟨U+000C⟩⟨U+001B⟩[31m⟨U+007F⟩⟨U+0085⟩⟨U+2066⟩x⟨U+2069⟩⟨U+2028⟩";
  assert.deepEqual(shown, { [text]: text });
  assert.equal(meant(text), name);
});

test("all other text is as it was: layout, what looks like an escape, other scripts", () => {
  for (const text of ["a\tb\nc\r\n", "\\u001b and \\", "\\\\u202e\u001b".slice(0, 7), "שלום_fn", "naïve ☃ 𝄞", ""]) {
    assert.equal(JSON.parse(visible(JSON.stringify(text))), text);
    assert.equal(meant(text), text);
  }
  // An escape of a harmless character beside one that is not.
  assert.equal(JSON.parse(visible('"\\u0041\\n\\\\u001b\\u202E"')), "A\n\\u001b⟨U+202E⟩");
});
