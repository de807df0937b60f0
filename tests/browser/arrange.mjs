// SPDX-License-Identifier: MIT
// Lanes as people arrange them: filtered, pinned, moved, hidden, alone in the window, and what they call them.
import assert from "node:assert/strict";
import { inBothThemes, open, place, settle, shot } from "./harness.mjs";

const names = (page) => page.locator(".head .name").allTextContents();

export async function arrangeChecks(suite, { url }) {
  await suite.check("lanes: filtered, pinned, moved, hidden; by keys, and in the link", {}, async (page) => {
    await open(page, url, "#/trace/farm-42");
    await page.keyboard.press("KeyL");
    await page.waitForSelector(".lanes tbody tr");
    assert.equal((await names(page)).length, 42);
    await page.focus("[aria-label='Pin cs.1f']");
    await page.keyboard.press("Enter");
    await settle(page);
    assert.equal((await names(page))[0], "cs.1f");
    await page.click("[aria-label='Up cs.11']");
    await page.click("[aria-label='Hide cs.12']");
    await settle(page);
    assert.deepEqual((await names(page)).slice(0, 4), ["cs.1f", "cs.11", "cs.10", "cs.13"]);
    // A pinned lane stays when the others scroll.
    await page.keyboard.press("KeyL");
    await page.mouse.move(600, 300);
    await page.mouse.wheel(0, 900);
    await settle(page);
    const top = (name) => page.locator(".head", { has: page.locator(`.name:text-is("${name}")`) }).evaluate((e) => e.offsetTop);
    assert.equal(await top("cs.1f"), 24);
    assert.ok(await top("cs.10") < 0);
    await inBothThemes(page, "lanes-pinned");
    const { query } = await place(page);
    assert.equal(query.get("pin"), "cs.1f");
    assert.equal(query.get("hide"), "cs.12");
    await page.reload();
    await page.waitForSelector("#timeline");
    await settle(page);
    assert.deepEqual((await names(page)).slice(0, 4), ["cs.1f", "cs.11", "cs.10", "cs.13"]);
    // Up and down go through what is seen.
    await page.focus("#timeline");
    await page.keyboard.press("ArrowDown");
    assert.equal((await place(page)).query.get("lane"), "cs.13");
    await page.keyboard.press("KeyL");
    await page.fill(".lanes .buttons input", "cs.2");
    await page.waitForFunction(() => document.querySelectorAll(".head").length === 16);
    assert.match(await page.textContent(".lanes"), /16 of 42 shown/);
    await page.click(".lanes button:has-text('Show all as they come')");
    await page.waitForFunction(() => document.querySelectorAll(".head").length === 42);
    await inBothThemes(page, "lanes-table");
  });

  await suite.check("lanes: one alone fills the window", {}, async (page) => {
    await open(page, url, "#/trace/soak-2026-01-02");
    await page.keyboard.press("KeyL");
    await page.click("[aria-label='Alone cs.12']");
    await page.keyboard.press("KeyL");
    await settle(page);
    assert.deepEqual(await names(page), ["cs.12"]);
    const [head, room] = await page.evaluate(() => [document.querySelector(".head").offsetHeight, document.querySelector(".plot").clientHeight]);
    assert.ok(head > 380 && head <= room, `${head} of ${room}`);
    await shot(page, "lane-alone");
    await page.keyboard.press("KeyL");
    await page.click("[aria-label='Alone cs.12']");
    await settle(page);
    assert.equal((await names(page)).length, 4);
  });
}

export async function calledChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");
  await suite.check("lanes: what people call them is kept by the server, cores are told", {}, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    await page.keyboard.press("KeyL");
    await page.fill("[aria-label='What cs.12 is called']", "big core");
    await page.press("[aria-label='What cs.12 is called']", "Tab");
    await page.waitForFunction(() => [...document.querySelectorAll(".head .name")].some((e) => e.textContent === "big core"));
    const { labels } = await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json();
    assert.equal(labels["lane.cs.12"], "big core");
    await page.waitForFunction(() => /ARM-AA64/.test(document.querySelector(".lanes tbody").textContent));
    await page.fill("[aria-label='What cs.12 is called']", "cs.12");
    await page.press("[aria-label='What cs.12 is called']", "Enter");
    await page.waitForFunction(() => [...document.querySelectorAll(".head .name")].every((e) => e.textContent !== "big core"));
    assert.equal((await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json()).labels["lane.cs.12"], undefined);
  });
}
