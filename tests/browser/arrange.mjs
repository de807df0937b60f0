// SPDX-License-Identifier: MIT
// Lanes as users arrange them: filtered, pinned, moved, hidden, alone in the window, and renamed.
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
    // Up and down go through the visible lanes.
    await page.focus("#timeline");
    await page.keyboard.press("ArrowDown");
    assert.equal((await place(page)).query.get("lane"), "cs.13");
    await page.keyboard.press("KeyL");
    await page.fill(".lanes .buttons input", "cs.2");
    await page.waitForFunction(() => document.querySelectorAll(".head").length === 16);
    assert.match(await page.textContent(".lanes"), /16 of 42 shown/);
    await page.click(".lanes button:has-text('Reset arrangement')");
    await page.waitForFunction(() => document.querySelectorAll(".head").length === 42);
    await inBothThemes(page, "lanes-table");
  });

  await suite.check("lanes: sixteen of them have their instructions as text and uncut heads", { fresh: true }, async (page) => {
    await page.addInitScript(() => {
      window.written = new Map(); // texts by their vertical position
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function noted(text, x, y, ...more) {
        if (this.canvas.matches?.("canvas.base")) window.written.set(y, (window.written.get(y) ?? new Map()).set(Math.round(x), text));
        return fill.call(this, text, x, y, ...more);
      };
    });
    const at = 1000000;
    const hide = Array.from({ length: 26 }, (_, k) => `cs.${(32 + k).toString(16)}`).join(",");
    await open(page, url, `#/trace/farm-42?from=${at}&to=${at + 8}&open=&hide=${hide}&panel=none`);
    const heads = await page.locator(".head").evaluateAll((all) => all.map((head) => {
      const within = head.getBoundingClientRect();
      const last = (head.querySelector(".gaps") ?? head.querySelector(".count")).getBoundingClientRect();
      return {
        name: head.querySelector(".name").textContent, top: head.offsetTop, bottom: head.offsetTop + head.offsetHeight,
        seen: within.bottom <= window.innerHeight, gaps: head.querySelector(".gaps")?.textContent ?? "",
        uncut: last.bottom <= within.bottom + 0.5 && last.right <= within.right + 0.5,
      };
    }));
    assert.equal(heads.length, 16);
    assert.ok(heads.some((h) => /^\d+ gaps?$/.test(h.gaps)) && heads.every((h) => h.uncut), JSON.stringify(heads));
    for (const { name, top, bottom } of heads.filter((h) => h.seen)) {
      const reply = await page.request.get(`${url}/api/v1/traces/farm-42/streams/${name}/insns?from=${at}&count=8`);
      const rows = await reply.json();
      const mnemonics = rows.map((row) => row.text.split(" ")[0]);
      assert.equal(mnemonics.length, 8);
      await page.waitForFunction(([y0, y1, wanted]) => [...window.written].some(([y, row]) => y > y0 && y < y1
        && JSON.stringify([...row].sort(([a], [b]) => a - b).map(([, text]) => text.split(" ")[0])) === JSON.stringify(wanted)),
      [top, bottom, mnemonics]);
    }
    await inBothThemes(page, "lanes-sixteen");
  });

  await suite.check("lanes: low heads are one line, above the titles of what is open below the lane", { fresh: true }, async (page) => {
    for (const [width, counts] of [[1400, true], [700, false]]) {
      await page.setViewportSize({ width, height: 800 });
      await open(page, url, "#/trace/farm-42?open=cs.12&panel=none");
      const heads = await page.locator(".head").evaluateAll((all) => all.map((head) => {
        const box = head.getBoundingClientRect();
        const part = document.querySelector(`.part[data-id="${head.dataset.id}/stack"]`)?.getBoundingClientRect().top;
        const seen = [...head.querySelectorAll(".name, .count, .gaps")].map((e) => ({ text: e.className, box: e.getBoundingClientRect() }))
          .filter((e) => e.box.width > 0);
        return {
          part, low: box.height < 40, seen: seen.map((e) => e.text),
          within: seen.every((e) => e.box.bottom <= (part ?? box.bottom) + 0.5 && (e.text !== "name" || e.box.right <= box.right)),
        };
      }));
      assert.ok(heads.filter((h) => h.low).length > 30 && heads.filter((h) => h.part !== undefined).length === 1, JSON.stringify(heads));
      assert.ok(heads.every((h) => h.within && h.seen.includes("name")), JSON.stringify(heads.filter((h) => !h.within)));
      assert.equal(heads.some((h) => h.low && h.seen.includes("gaps")), counts);
    }
  });

  await suite.check("lanes: a tree of rig, cores and lanes, by keys alone, and in the link", {}, async (page) => {
    await open(page, url, "#/trace/farm-42");
    const tree = page.locator(".heads[role=tree]");
    const lines = () => tree.locator("[role=treeitem]").evaluateAll((all) => all.map((e) => `${e.ariaLevel} ${e.dataset.id}`));
    await page.waitForSelector("[data-id='/Cortex-A53']");
    assert.deepEqual((await lines()).slice(0, 3), ["1 /", "2 /Cortex-A72", "3 cs.10"]);
    assert.match(await page.textContent("[data-id='/']"), /42 lanes/);
    const focus = () => page.evaluate(() => document.activeElement.dataset.id);
    const press = async (key, at) => {
      await page.keyboard.press(key);
      await page.waitForFunction((id) => document.activeElement.dataset.id === id, at);
    };
    // From the selected lane to its group, which is folded, and to the next one.
    await tree.locator("[tabindex='0']").focus();
    assert.equal(await focus(), "cs.10");
    await press("ArrowLeft", "/Cortex-A72");
    await press("ArrowLeft", "/Cortex-A72");
    await page.waitForSelector("[data-id='/Cortex-A72'][aria-expanded=false]");
    await press("ArrowDown", "/Cortex-A53");
    await press("Shift+ArrowUp", "/Cortex-A53");
    await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]")[1].dataset.id === "/Cortex-A53");
    await press("Enter", "/Cortex-A53");
    await settle(page);
    assert.deepEqual(await lines(), ["1 /", "2 /Cortex-A53", "2 /Cortex-A72"]);
    // The line of a folded group is painted, with details under the pointer.
    const [y, height] = await page.locator("[data-id='/Cortex-A72']").evaluate((e) => [e.offsetTop, e.offsetHeight]);
    const painted = await page.evaluate(([top, h]) => {
      const canvas = document.querySelector("canvas.base");
      const { data } = canvas.getContext("2d").getImageData(0, top, 200, h);
      return new Set(new Uint32Array(data.buffer)).size;
    }, [y, height]);
    assert.ok(painted > 3, `${painted} colours`);
    const box = await page.locator("#timeline").boundingBox();
    await page.mouse.move(box.x + 100, box.y + y + 10);
    await page.waitForFunction(() => /Cortex-A72, 8 lanes/.test(document.querySelector("#status").textContent));
    await inBothThemes(page, "lanes-tree");
    const { query } = await place(page);
    assert.equal(query.get("fold"), "/Cortex-A72,/Cortex-A53");
    assert.match(query.get("lanes"), /^\/Cortex-A53,\/Cortex-A72/);
    await page.reload();
    await page.waitForSelector("[data-id='/Cortex-A53']");
    await settle(page);
    assert.deepEqual(await lines(), ["1 /", "2 /Cortex-A53", "2 /Cortex-A72"]);
    // Enlarged: only its lanes; then one of them, kept above the others; hidden; all of them again.
    await tree.locator("[tabindex='0']").focus();
    await page.locator("[data-id='/Cortex-A72']").focus();
    await press("ArrowRight", "/Cortex-A72");
    await page.keyboard.press("KeyE");
    await page.waitForFunction(() => document.querySelectorAll(".head").length === 8);
    await press("End", "cs.17");
    await page.keyboard.press("KeyO");
    await page.waitForFunction(() => document.querySelector("[role=treeitem]").dataset.id === "cs.17");
    await page.keyboard.press("KeyH");
    await page.waitForFunction(() => document.querySelectorAll(".head").length === 7);
    await page.keyboard.press("KeyU");
    await page.waitForFunction(() => /42 lanes|41 lanes/.test(document.querySelector("[data-id='/']").textContent));
    // By dragging, a lane moves among those of its core.
    const of = (id) => page.locator(`[data-id='${id}']`).boundingBox();
    const [from, to] = [await of("cs.10"), await of("cs.12")];
    await page.mouse.move(from.x + 60, from.y + 5);
    await page.mouse.down();
    await page.mouse.move(from.x + 60, from.y + 15);
    for (let i = 0; i < 3; i++) {
      await page.mouse.move(from.x + 60, to.y + to.height - 4 + i);
      await settle(page);
    }
    await page.mouse.up();
    assert.deepEqual((await names(page)).slice(0, 4), ["cs.17", "cs.11", "cs.12", "cs.10"]);
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
    await page.fill("[aria-label='Name of cs.12']", "big core");
    await page.press("[aria-label='Name of cs.12']", "Tab");
    await page.waitForFunction(() => [...document.querySelectorAll(".head .name")].some((e) => e.textContent === "big core"));
    const { labels } = await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json();
    assert.equal(labels["lane.cs.12"], "big core");
    assert.equal(await page.getAttribute("[aria-label='Core or group of cs.12']", "placeholder"), "ARM-AA64");
    // The same for a location entered by the user: the tree follows.
    await page.fill("[aria-label='Core or group of cs.12']", "cluster 1 / core 0");
    await page.press("[aria-label='Core or group of cs.12']", "Enter");
    await page.waitForSelector("[data-id='/cluster 1/core 0'][aria-level='3']");
    await page.fill("[aria-label='Core or group of cs.12']", "");
    await page.press("[aria-label='Core or group of cs.12']", "Enter");
    await page.waitForSelector("[data-id='/cluster 1']", { state: "detached" });
    await page.fill("[aria-label='Name of cs.12']", "cs.12");
    await page.press("[aria-label='Name of cs.12']", "Enter");
    await page.waitForFunction(() => [...document.querySelectorAll(".head .name")].every((e) => e.textContent !== "big core"));
    assert.equal((await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json()).labels["lane.cs.12"], undefined);
  });
}
