// SPDX-License-Identifier: MIT
// Notes: written, found again, changed and removed using only the keyboard.
import assert from "node:assert/strict";
import { colours, cssColour, inBothThemes, open, place, settle } from "./harness.mjs";

export async function noteChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");
  const stored = async (page) => (await page.request.get(`${base}/api/v1/traces/${trace}/notes`)).json();
  const flags = async (page) => (await colours(page, "canvas.over"))[await cssColour(page, "hit")] ?? 0;

  await suite.check("notes: written at the cursor, kept on the server, changed and removed", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?at=5000&from=4000&to=7000`);
    assert.equal(await flags(page), 0);
    await page.focus("#timeline");
    await page.keyboard.press("m");
    await page.waitForSelector(".note textarea:focus");
    await page.keyboard.type("Here it begins,\nand goes on");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => /Here it begins/.test(document.querySelector("ul.notelist")?.textContent ?? ""));
    const [note] = await stored(page);
    assert.deepEqual([note.at, note.to, note.text], [5000, 5000, "Here it begins,\nand goes on"]);
    assert.ok(await flags(page) > 20, "the flag is drawn");
    // A bookmark elsewhere, and going from one to the other.
    await page.evaluate(() => { location.hash = location.hash.replace("at=5000", "at=6500"); });
    await page.waitForFunction(() => location.hash.includes("at=6500"));
    await settle(page);
    await page.focus("#timeline");
    await page.keyboard.press("Shift+M");
    await page.waitForFunction(() => document.querySelectorAll("ul.notelist li").length === 2);
    await page.keyboard.press("Shift+B");
    await page.waitForFunction(() => location.hash.includes("at=5000"));
    await page.keyboard.press("b");
    await page.waitForFunction(() => location.hash.includes("at=6500"));
    await settle(page);
    await inBothThemes(page, "notes");
    // It is visible to others, also on the time axis.
    await page.goto("about:blank");
    await open(page, base, `#/trace/${trace}?axis=time&panel=notes`);
    await page.waitForSelector("ul.notelist li");
    assert.equal(await page.locator("ul.notelist li").count(), 2);
    assert.ok(await flags(page) > 0);
    await page.locator("ul.notelist .go").first().focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((time) => location.hash.includes(`at=${time}`), note.time);
    // Changed and removed with keys.
    await page.getByRole("button", { name: /^Edit “Here/ }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(".note textarea:focus");
    assert.equal(await page.inputValue(".note textarea"), note.text);
    await page.keyboard.press("Control+A");
    await page.keyboard.type("Changed");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => /Changed/.test(document.querySelector("ul.notelist").textContent));
    assert.equal((await stored(page))[0].text, "Changed");
    for (let left = 2; left > 0; left--) {
      await page.locator("ul.notelist .go").first().focus();
      await page.keyboard.press("Delete");
      await page.waitForFunction((n) => document.querySelectorAll("ul.notelist li").length === n, left - 1);
    }
    assert.deepEqual(await stored(page), []);
    assert.equal((await place(page)).query.get("panel"), "notes");
  });
}
