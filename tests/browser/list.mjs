// SPDX-License-Identifier: MIT
// The page of traces: order, labels, pushing captures, deletion, storage.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { frame, inBothThemes, root, shot } from "./harness.mjs";

export async function listChecks(suite, { server, dir }) {
  const base = server.replace(/\/$/, "");
  const get = async (page, rest) => (await page.request.get(`${base}/api/v1/traces${rest}`)).json();
  const row = (page, id) => page.locator("table.traces tbody tr", { has: page.locator(`#trace-${id}`) });

  await suite.check("list: sorted by any column, storage told", {}, async (page) => {
    await page.goto(base);
    await page.waitForSelector("table.traces tbody tr");
    const all = await get(page, "");
    const insns = (t) => t.streams.reduce((n, s) => n + (/stm|itm|uart/.test(s.protocol) ? 0 : s.insns), 0);
    const ids = async () => (await page.locator("table.traces tbody a").allTextContents()).map((x) => x.trim());
    assert.deepEqual(await ids(), all.map((t) => t.id));
    await page.click("th button:has-text('Instructions')");
    await page.waitForSelector("th[aria-sort=descending]");
    const wanted = [...all].sort((a, b) => insns(b) - insns(a)).map((t) => t.id);
    assert.equal((await ids())[0], wanted[0]);
    await page.focus("th button:has-text('Trace')");
    await page.keyboard.press("Enter");
    await page.waitForSelector("th[aria-sort=ascending]");
    assert.deepEqual(await ids(), all.map((t) => t.id).sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)));
    assert.match(await page.textContent(".storage"), /^\d+ on this server, .*B raw and .*B decoded$/);
  });

  await suite.check("list: a telephone has room for it", { viewport: { width: 390, height: 800 } }, async (page) => {
    await page.goto(base);
    await page.waitForSelector("table.traces tbody tr");
    await shot(page, "list-telephone");
    const box = async (what) => page.locator(what).first().boundingBox();
    const bring = await box(".listhead .action");
    assert.ok(bring.x + bring.width <= 390, `"Import" ends at ${bring.x + bring.width}`);
    assert.ok((await box(".listhead")).height < 120, "the head is one of many lines");
    // Nothing covers the columns.
    const [state, tools] = [await box("table.traces tbody td"), await box("table.traces td.tools")];
    assert.ok(tools.x >= state.x + state.width, JSON.stringify({ state, tools }));
  });

  // Five hundred traces are too many for a test: the page requests two, then four.
  await suite.check("list: of many traces the newest ones, and older ones when they are asked for", {}, async (page) => {
    await page.route(/api.v1.events/, (route) => route.continue({ url: route.request().url().replace(/limit=(\d+)/, (_, n) => `limit=${Number(n) / 250}`) }));
    await page.goto(base);
    const ids = (await get(page, "")).map((t) => t.id);
    const shown = (n) => page.waitForFunction((ids) => ids.join() === [...document.querySelectorAll("table.traces tbody a")].map((a) => a.textContent.trim()).join(), ids.slice(0, n));
    await shown(2);
    assert.match(await page.textContent(".storage"), /^The newest 2, /);
    await page.click("button:has-text('Show older')");
    await shown(4);
    // A trace that is not listed is shown nevertheless, and is not considered gone.
    const old = ids.at(-1);
    await page.goto(`${base}/#/trace/${old}`);
    await page.waitForSelector("header .badge");
    const asked = page.waitForResponse((r) => r.url().endsWith(`/api/v1/traces/${old}`));
    await page.request.post(`${base}/api/v1/traces/${old}/labels`, { data: { seen: "" } });
    assert.equal((await asked).status(), 200);
    await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
    assert.equal(await page.locator("header .badge.deleted").count(), 0);
  });

  await suite.check("list: what perf recorded is told by its first bytes", {}, async (page) => {
    await page.goto(base);
    await page.waitForSelector("table.traces tbody tr");
    const bytes = [...fs.readFileSync(path.join(root, "tests/fuzz/corpus/perf/remap.pipe")).subarray(1)];
    const data = await page.evaluateHandle((b) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(b)], "recorded.bin"));
      return transfer;
    }, bytes);
    await page.dispatchEvent("main.list", "drop", { dataTransfer: data });
    await page.waitForFunction(() => document.querySelector("dialog select")?.value.startsWith("perf,"));
    await page.click("dialog button:has-text('Push')");
    await row(page, "recorded").locator(".badge.sealed").waitFor();
    const { streams } = await get(page, "/recorded");
    assert.ok(streams.some((s) => s.name === "pt.0") && streams.some((s) => s.name === "event.task"), JSON.stringify(streams));
  });

  await suite.check("list: a file is dropped, labelled and deleted", {}, async (page) => {
    await page.goto(base);
    await page.waitForSelector("table.traces tbody tr");
    const bytes = [...fs.readFileSync(path.join(dir, "gaps.etm"))];
    const data = await page.evaluateHandle((b) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(b)], "dropped here.etm"));
      return transfer;
    }, bytes);
    await page.dispatchEvent("main.list", "dragover", { dataTransfer: data });
    await page.waitForSelector("main.dropping");
    await page.dispatchEvent("main.list", "drop", { dataTransfer: data });
    await page.waitForSelector("dialog[open]");
    assert.equal(await page.inputValue("dialog input[required]"), "dropped-here");
    assert.equal(await page.inputValue("dialog select"), "etm4,id=0x10");
    await inBothThemes(page, "bring-in");
    await page.fill("dialog textarea", fs.readFileSync(path.join(dir, "gaps.ini"), "utf8").replace("[trace]\nformat=etm4\n", ""));
    await page.click("dialog button:has-text('Push')");
    await page.waitForSelector("dialog", { state: "detached" });
    await row(page, "dropped-here").waitFor();
    await row(page, "dropped-here").locator(".badge.sealed").waitFor();
    const pushed = await get(page, "/dropped-here");
    assert.equal(pushed.raw_bytes, bytes.length);
    assert.equal(pushed.streams[0].gaps, 1);

    await page.focus("button[aria-label='Labels of dropped-here']");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog[open]");
    await page.fill("[aria-label='Label 1']", "board");
    await page.fill("[aria-label='Value 1']", "juno r2");
    await inBothThemes(page, "labels");
    await page.press("[aria-label='Value 1']", "Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await row(page, "dropped-here").locator(".label:has-text('board=juno r2')").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Labels of dropped-here");
    await page.keyboard.press("Enter");
    await page.fill("[aria-label='Value 1']", "");
    await page.press("[aria-label='Value 1']", "Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.waitForFunction(() => !document.querySelector("tbody").textContent.includes("board="));
    assert.deepEqual((await get(page, "/dropped-here")).labels, {});

    await page.click("button[aria-label='Delete dropped-here']");
    await page.waitForSelector("dialog[open]");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Cancel");
    await inBothThemes(page, "delete");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal(await row(page, "dropped-here").count(), 1);
    await page.click("button[aria-label='Delete dropped-here']");
    await page.click("dialog .danger");
    await page.waitForFunction(() => !document.querySelector("#trace-dropped-here"));
    assert.equal((await page.request.get(`${base}/api/v1/traces/dropped-here`)).status(), 404);
    await shot(page, "list-sorted");
  });

  await suite.check("list: what the server refuses is told in the dialog", {}, async (page, troubles) => {
    await page.goto(base);
    await page.waitForSelector("table.traces tbody tr");
    await page.click("button:has-text('Import…')");
    await page.setInputFiles("dialog input[type=file]", path.join(dir, "gaps.etm"));
    await page.fill("dialog input[required]", "gaps");
    await page.click("dialog button:has-text('Push')");
    await page.waitForSelector("dialog .trouble");
    assert.match(await page.textContent("dialog .trouble"), /trace gaps exists/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    troubles.length = 0; // the browser logs refused requests
  });

  await suite.check("list: what is typed before a slow page draws is what counts", { fresh: true }, async (page) => {
    // Frames are drawn only when allowed; the list has not arrived yet.
    await page.addInitScript(() => {
      const real = window.requestAnimationFrame.bind(window);
      const held = [];
      let holding = false;
      window.requestAnimationFrame = (f) => (holding ? held.push(f) : real(f));
      window.holdFrames = (on) => {
        holding = on;
        for (const f of held.splice(0)) real(f);
      };
    });
    let release;
    const released = new Promise((resolve) => { release = resolve; });
    await page.route("**/api/v1/events*", async (route) => {
      await released;
      await route.continue().catch(() => {});
    });
    await page.goto(base);
    const name = page.locator("dialog input[required]");
    await page.click("button:has-text('Import…')");
    await page.waitForSelector("dialog[open]");
    await page.evaluate(() => window.holdFrames(true));
    await page.setInputFiles("dialog input[type=file]", path.join(dir, "gaps.etm"));
    await name.evaluate((field) => { field.focus(); field.select(); });
    await page.evaluate(() => window.holdFrames(false));
    await frame(page);
    await page.keyboard.insertText("other"); // as an input method does, without keys
    assert.equal(await name.inputValue(), "other");
    release();
    await page.waitForSelector("table.traces tbody tr");
    assert.equal(await name.inputValue(), "other");
    // A manual choice is kept when another file is chosen.
    await page.selectOption("dialog select", "stf");
    await page.setInputFiles("dialog input[type=file]", path.join(dir, "gaps.ini"));
    await page.waitForSelector("dialog label b:has-text('gaps.ini')");
    assert.deepEqual([await name.inputValue(), await page.inputValue("dialog select")], ["other", "stf"]);

    // A press that began in a field is not a click outside the dialog; one that began outside is.
    const field = await name.boundingBox();
    await page.mouse.move(field.x + 10, field.y + 10);
    await page.mouse.down();
    await page.mouse.move(20, 400);
    await page.mouse.up();
    await frame(page);
    assert.equal(await page.locator("dialog[open]").count(), 1);
    await page.mouse.click(20, 400);
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Import…");
  });
}
