// SPDX-License-Identifier: MIT
// Everything around the lanes: panel and window, focus, links, tables that end early, pixels between buckets.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { accessible, build, colours, cssColour, inBothThemes, open, place, settle, shot } from "./harness.mjs";

export async function frameChecks(suite, { server, trace, plain }) {
  const base = server.replace(/\/$/, "");

  await suite.check("frame: the panel can be made wider, by hand and by keys, and stays so", {}, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    const width = () => page.evaluate(() => document.querySelector(".side").getBoundingClientRect().width);
    const first = await width();
    const bar = await page.locator(".divider").boundingBox();
    await page.mouse.move(bar.x + 5, bar.y + 300);
    await page.mouse.down();
    await page.mouse.move(bar.x - 95, bar.y + 300, { steps: 3 });
    await page.mouse.up();
    assert.ok(Math.abs(await width() - first - 100) < 3, `${first} to ${await width()}`);
    await page.focus(".divider");
    await page.keyboard.press("ArrowRight");
    assert.ok(Math.abs(await width() - first - 76) < 3);
    await accessible(page);
    await page.reload();
    await page.waitForSelector(".side");
    assert.ok(Math.abs(await width() - first - 76) < 3);
  });

  await suite.check("frame: a narrow window shows the lanes and the panel", { viewport: { width: 520, height: 820 } }, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    const box = (s) => page.locator(s).boundingBox();
    const [plot, side] = [await box(".plot"), await box(".side")];
    assert.ok(plot.width > 360 && plot.height > 150, JSON.stringify(plot));
    assert.ok(side.y >= plot.y + plot.height && side.width > 500, JSON.stringify(side));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 520);
    await inBothThemes(page, "narrow");
  });

  await suite.check("frame: the focus is kept, the selected tab is seen in forced colours", { forcedColors: "active" }, async (page) => {
    await page.goto(base);
    await page.focus(`#trace-${trace}`);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#timeline");
    await settle(page);
    const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className);
    assert.equal(await focused(), "timeline");
    // Tabs are in one column, and arrow keys go through them.
    const tabs = await page.locator("[role=tab]").evaluateAll((all) => all.map((e) => { const b = e.getBoundingClientRect(); return [b.left, b.bottom]; }));
    assert.equal(new Set(tabs.map(([left]) => left)).size, 1);
    assert.ok(tabs.every(([, bottom]) => bottom <= 860), JSON.stringify(tabs));
    await page.focus("[role=tab][aria-selected=true]");
    for (const [key, id] of [["ArrowUp", "tab-compare"], ["ArrowDown", "tab-overview"], ["End", "tab-compare"], ["Home", "tab-overview"]]) {
      await page.keyboard.press(key);
      await page.waitForFunction((wanted) => document.activeElement.id === wanted, id);
    }
    // Two key presses between two frames: the second continues from the first.
    await page.evaluate(() => {
      for (const key of ["ArrowUp", "ArrowDown"]) document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    });
    assert.equal(await focused(), "tab-overview");
    await page.waitForSelector("#tab-overview[aria-selected=true]"); // drawn with the next frame
    const outline = await page.locator("#tab-overview").evaluate((e) => getComputedStyle(e).outlineStyle);
    assert.equal(outline, "solid");
    await page.focus(".search input");
    await page.focus("#tab-events");
    await page.keyboard.press("Shift+?");
    await page.waitForSelector("dialog[open]");
    assert.match(await page.textContent("dialog"), /How to read a lane/);
    assert.equal(await page.locator("dialog").evaluate((e) => e.scrollTop), 0); // scrolled to its beginning
    await accessible(page);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.equal(await focused(), "tab-events");
    await page.click("header .brand");
    await page.waitForSelector("table.traces");
    assert.equal(await focused(), "brand");
  });

  await suite.check("frame: another link is another state: search, folds, lane", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?find=gap&lane=cs.12&open=cs.12&at=5000&panel=find`);
    await page.waitForSelector("#hits .gridbody [role=row]");
    assert.equal(await page.inputValue(".search input"), "gap");
    assert.equal(await page.locator(".fold[aria-expanded=true]").count(), 1);
    await page.evaluate((t) => { location.hash = `#/trace/${t}?at=6000`; }, trace);
    await page.waitForFunction(() => document.querySelector(".search input").value === "");
    await settle(page);
    assert.match(await page.textContent(".head.selected"), /cs\.10/);
    assert.equal(await page.locator(".fold[aria-expanded=true]").count(), 2);
    assert.equal((await place(page)).query.get("find"), null);
  });

  await suite.check("frame: a table that ends early says so, and gives the rest", {}, async (page) => {
    const stats = await (await page.request.get(`${base}/api/v1/traces/${trace}/streams/cs.10/stats?from=0&to=1000000&functions=1000`)).json();
    assert.ok(stats.functions_run > 50);
    await open(page, base, `#/trace/${trace}?select=0-1000000&panel=stats`);
    // It may be counted again while the page opens: the table disappears and comes back.
    await page.waitForFunction((n) => document.querySelectorAll("table.hot tbody tr").length === 50
      && document.querySelector(".tabpanel").textContent.includes(`50 of ${n}`), stats.functions_run);
    await page.click(".tabpanel button:has-text('Show all')");
    await page.waitForFunction((n) => document.querySelectorAll("table.hot tbody tr").length === n, stats.functions_run);
    assert.doesNotMatch(await page.textContent(".tabpanel"), /50 of/);
  });

  await suite.check("frame: any command by typing; a picture of the view", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?lane=cs.12&at=3000000`); // which has the gaps
    const commands = async () => {
      await page.keyboard.press("Control+KeyK");
      await page.waitForFunction(() => document.activeElement.matches("dialog.commands[open] input"));
    };
    await commands();
    await page.keyboard.type("next gap");
    await page.waitForFunction(() => /Next gap/.test(document.querySelector("#commands [role=option]").textContent));
    await inBothThemes(page, "commands");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /gap overflow, \d/.test(document.querySelector("#status").textContent));
    await commands();
    await page.keyboard.type("panel stat");
    await page.waitForFunction(() => document.querySelectorAll("#commands [role=option]").length === 1);
    await page.keyboard.press("Enter");
    assert.equal((await place(page)).query.get("panel"), "stats");
    await commands();
    // Typed and entered between two frames.
    const [download] = await Promise.all([page.waitForEvent("download"), page.evaluate(() => {
      const input = document.activeElement;
      input.value = "picture";
      input.dispatchEvent(new InputEvent("input", { bubbles: true }));
      input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    })]);
    assert.equal(download.suggestedFilename(), `${trace}.png`);
    const png = fs.readFileSync(await download.path());
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
    assert.ok(width > 900 && height > 600 && png.length > 5000, `${width} x ${height}, ${png.length}`);
    fs.writeFileSync(path.join(build, "screenshots/picture.png"), png);
  });

  await suite.check("frame: a measure snaps to the edges of calls, but not with Alt", {}, async (page) => {
    const [from, to] = [1000000, 1004000];
    await open(page, base, `#/trace/${trace}?from=${from}&to=${to}`);
    const { streams } = await (await page.request.get(`${base}/api/v1/traces/${trace}/slices?streams=cs.10&axis=insn&from=${from}&to=${to}`)).json();
    const wide = streams["cs.10"].slices.filter((s) => s.from > from + 100 && s.to < to - 100).sort((a, b) => (b.to - b.from) - (a.to - a.from))[0];
    const box = await page.locator(".plot").boundingBox();
    const x = (at) => box.x + ((at - from) / (to - from)) * box.width;
    // No other edge may be closer than the intended one.
    const edges = streams["cs.10"].slices.filter((s) => x(s.to) - x(s.from) >= 2).flatMap((s) => [s.from, s.to]);
    const nearest = (px) => edges.map((e) => [Math.abs(x(e) - px), e]).sort((a, b) => a[0] - b[0])[0][1];
    const drag = async (a, b) => {
      await page.mouse.move(a, box.y + 60);
      await page.keyboard.down("Shift");
      await page.mouse.down();
      await page.mouse.move(b, box.y + 60, { steps: 3 });
      await page.mouse.up();
      await page.keyboard.up("Shift");
      return (await place(page)).query.get("select");
    };
    const [a, b] = [Math.round(x(wide.from)) + 1, Math.round(x(wide.to)) - 1];
    assert.equal(await drag(a, b), `${nearest(a)}-${nearest(b)}`);
    await page.keyboard.press("Escape");
    await page.keyboard.down("Alt");
    const free = (await drag(a, b)).split("-").map(Number);
    await page.keyboard.up("Alt");
    assert.ok(Math.abs(x(free[0]) - a) < 1 && Math.abs(x(free[1]) - b) < 1, free.join());
  });

  if (!plain) return;
  await suite.check("frame: no background shows between buckets of code without symbols", { viewport: { width: 1600, height: 700 } }, async (page) => {
    await open(page, base, `#/trace/${plain}?from=100000&to=100600`);
    const named = await Promise.all(["ground", "stripe"].map((n) => cssColour(page, n)));
    const seams = await page.evaluate((names) => {
      const canvas = document.querySelector("canvas.base");
      const { data } = canvas.getContext("2d").getImageData(0, 60, canvas.width, 1);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) {
        n += names.includes(`#${((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]).toString(16).padStart(6, "0")}`) ? 1 : 0;
      }
      return n;
    }, named);
    assert.equal(seams, 0);
    // Band and call stack have the same colours, for the whole trace as well.
    const alike = () => page.evaluate(() => {
      const canvas = document.querySelector("canvas.base");
      const of = (y) => {
        const { data } = canvas.getContext("2d").getImageData(0, y, canvas.width, 1);
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
        return [...seen];
      };
      const all = new Set();
      for (let y = 90; y < canvas.height; y += 3) for (const c of of(y)) all.add(c);
      // The calls drawn are from the whole trace.
      const { data } = canvas.getContext("2d").getImageData(0, 60, canvas.width, 1);
      const ends = [0.1, 0.9].map((share) => data.slice(4 * Math.floor(share * canvas.width), 4 * Math.floor(share * canvas.width) + 3).join());
      return [of(60), [...all], ends];
    });
    for (const [hash, least] of [["?from=100000&to=100600", 3], ["", 1]]) {
      await open(page, base, `#/trace/${plain}${hash}`);
      const [band, stack, ends] = await alike();
      assert.ok(band.length >= least, `${band.length} colours`);
      const ground = await cssColour(page, "ground");
      for (const c of band) assert.ok(stack.includes(c) || `#${c.toString(16).padStart(6, "0")}` === ground, `#${c.toString(16)} is not in the stack`);
      if (hash === "") assert.equal(ends[0], ends[1]);
    }
    assert.ok(Object.keys(await colours(page)).length > 3);
    await shot(page, "no-symbols");
    // The same for a closed lane and the overview, although nobody has requested its calls.
    await open(page, base, `#/trace/${plain}?open=`);
    await page.waitForFunction(() => {
      const colour = (selector, y) => {
        const canvas = document.querySelector(selector);
        return canvas.getContext("2d").getImageData(Math.floor(canvas.width / 2), y, 1, 1).data.join();
      };
      return document.querySelector(".fold[aria-expanded=false]") && colour("canvas.minimap", 12) === colour("canvas.base", 60);
    });
    const closed = await page.evaluate(() => document.querySelector("canvas.base").getContext("2d").getImageData(200, 60, 1, 1).data.slice(0, 3).join());
    assert.equal(closed, (await alike())[2][0]);
  });
}
