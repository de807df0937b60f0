// SPDX-License-Identifier: MIT
// The newest of a lane while its edge is followed, and downloads, filtered by the server.
import assert from "node:assert/strict";
import { inBothThemes, open, settle } from "./harness.mjs";

export async function tailChecks(suite, { server, trace, live }) {
  const base = server.replace(/\/$/, "");
  const lines = (page) => page.locator("ol.tail li").allTextContents();

  await suite.check("tail: the newest lines of a lane that is followed, those of a mode alone", {}, async (page) => {
    await open(page, base, `#/trace/${live}?axis=insn&lane=cs.10&follow=zoom&panel=insns`);
    await page.waitForSelector("ol.tail li:nth-child(50)");
    const first = (await lines(page)).at(-1);
    await page.waitForFunction((was) => document.querySelector("ol.tail li:last-child").textContent !== was, first);
    // Lines are those of the flow text.
    assert.ok((await lines(page)).every((line) => /^([A-Z] |[A-Z]$|…)/.test(line)));
    const field = page.locator(".only input").first();
    await field.fill("k");
    await field.press("Enter");
    await page.waitForFunction(() => /^M el1/m.test([...document.querySelectorAll("ol.tail li")].map((li) => li.textContent).join("\n")), undefined, { polling: 200 });
    const modes = (await lines(page)).filter((line) => line.startsWith("M "));
    assert.ok(modes.length > 0 && modes.every((line) => line.startsWith("M el1")), String(modes));
    await field.fill("ring0");
    await field.press("Enter");
    await page.waitForFunction(() => ![...document.querySelectorAll("ol.tail li")].some((li) => li.textContent.startsWith("I ")), undefined, { polling: 200 });
    await field.fill("");
    await field.press("Enter");
    await page.waitForFunction(() => [...document.querySelectorAll("ol.tail li")].some((li) => li.textContent.startsWith("I ")), undefined, { polling: 200 });
    await inBothThemes(page, "tail");
    // A click ends it: what is there is looked at.
    const plot = await page.locator("#timeline").boundingBox();
    await page.mouse.click(plot.x + plot.width / 3, plot.y + 60);
    await page.waitForSelector(".insn.here");
  });

  await suite.check("statistics: downloads of a part of the program", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?axis=insn&lane=cs.10&from=4000&to=6000&select=4500-4700&panel=stats`);
    await page.waitForSelector("table.hot");
    await page.locator(".only input").first().fill("k");
    await page.keyboard.press("Tab");
    await settle(page);
    const href = await page.locator(".links a", { hasText: "text" }).getAttribute("href");
    const got = await (await page.request.get(`${base}/${href}`, { ignoreHTTPSErrors: true })).text();
    const all = await (await page.request.get(`${base}/${href.replace("&mode=k", "")}`, { ignoreHTTPSErrors: true })).text();
    assert.ok(got.length < all.length && /^M el1/m.test(got) && !/^M el0/m.test(got));
  });
}
