// SPDX-License-Identifier: MIT
// The overview on opening: the server's counts, colours by rank, a single function; and uploading a missing program
// image from the page.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { CODE } from "./etm.mjs";
import { accessible, colours, inBothThemes, open, place, settle, shot } from "./harness.mjs";

const rgb = (css) => `#${css.match(/\d+/g).slice(0, 3).map((n) => Number(n).toString(16).padStart(2, "0")).join("")}`;
const squeezed = (text) => text.replace(/\s+/g, " ");

export async function overviewChecks(suite, { server, trace, older, noimage, silent, garbage, dir }) {
  const base = server.replace(/\/$/, "");

  await suite.check("overview: what the server counted; the hottest functions have colours of their own", {}, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    await page.waitForSelector(".overview table.hot tbody tr");
    const stats = await (await page.request.get(`${base}/api/v1/traces/${trace}/stats`)).json();
    const each = await Promise.all((await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json()).streams
      .map(async (s) => (await page.request.get(`${base}/api/v1/traces/${trace}/streams/${s.name}/stats`)).json()));
    assert.equal(stats.insns, each.reduce((n, s) => n + s.insns, 0));
    const rows = page.locator(".overview table.hot tbody tr");
    const names = (await rows.locator("th").allTextContents()).map((t) => t.trim());
    assert.deepEqual(names.slice(0, 20), stats.functions.slice(0, 20).map((f) => f.name));
    const shown = await rows.locator(".swatch").evaluateAll((all) => all.map((e) => getComputedStyle(e).backgroundColor));
    assert.equal(new Set(shown).size, 20, "no two are alike");
    const seen = await colours(page);
    assert.ok(seen[rgb(shown[0])] > 500, "the hottest function is in the lanes");
    const gaps = Object.values(stats.gaps).reduce((a, b) => a + b, 0);
    assert.match(squeezed(await page.textContent(".overview")), new RegExp(`overflow ${gaps}\\s*≤ [\\d.]+ [µm]s\\s*≤ [\\d.]+ [µm]s`));
    assert.ok(stats.lost.overflow.longest > 0 && stats.lost.overflow.total >= stats.lost.overflow.longest && stats.lost.overflow.n <= gaps);
    const modes = Object.entries(stats.modes).map(([m]) => m);
    for (const m of modes) assert.ok((await page.textContent(".overview")).includes(m));
    await inBothThemes(page, "overview");

    // Select a single function by keyboard; all others become grey, and the link contains it.
    await rows.nth(1).locator("button").focus();
    await page.keyboard.press("Enter");
    await settle(page);
    const alone = await colours(page);
    assert.ok(alone[rgb(shown[1])] > 200);
    for (const other of [0, 2, 3, 4]) assert.ok(!(alone[rgb(shown[other])] > 0), `${names[other]} is still coloured`);
    assert.equal((await place(page)).query.get("alone"), names[1]);
    await shot(page, "overview-alone");
    await page.reload();
    await page.waitForSelector(".overview button[aria-pressed=true]");
    await settle(page);
    assert.ok((await colours(page))[rgb(shown[1])] > 200);
    await page.keyboard.press("Escape");
    await settle(page);
    assert.ok((await colours(page))[rgb(shown[0])] > 500);

    await page.click("table.lengths th button:has-text('overflow')");
    await page.waitForSelector("#events .gridbody [role=row]");
    assert.equal(await page.locator("#events .gridbody [role=row]").count(), stats.gaps.overflow);
    assert.equal((await place(page)).query.get("kinds"), "overflow");
  });

  await suite.check("overview: sources that sent nothing are named, and why nothing was decoded", {}, async (page) => {
    await open(page, base, `#/trace/${silent}`);
    await page.waitForFunction(() => document.querySelector(".silent")?.textContent === "No trace came from ITM_9 (cs.20)");
    await accessible(page);
    await shot(page, "silent");
    await open(page, base, `#/trace/${trace}`);
    await page.waitForSelector(".overview table.hot tbody tr");
    assert.ok(!await page.isVisible(".silent"));
    await page.evaluate(() => {
      window.notes = [];
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function noted(text, ...more) {
        window.notes.push(text);
        return fill.call(this, text, ...more);
      };
    });
    await page.evaluate((hash) => { location.hash = hash; }, `#/trace/${garbage}`);
    await page.waitForFunction(() => window.notes.some((t) => t.startsWith("None of 2.0 KiB could be decoded as etm4: check the format")));
    assert.ok(!/in view/.test(await page.textContent("#status")));
  });

  if (!older) suite.skip("overview: a table of gaps is as wide as its panel", "no data");
  else await suite.check("overview: a table of gaps is as wide as its panel, also in ticks", { viewport: { width: 1280, height: 800 } }, async (page) => {
    await open(page, base, `#/trace/${older}?axis=time&panel=overview`);
    await page.waitForSelector("table.lengths tbody tr");
    assert.match(await page.textContent("table.lengths"), /≤ [\d.]+ M ticks/);
    const [table, panel] = await page.evaluate(() => ["table.lengths", ".overview"].map((s) => document.querySelector(s).getBoundingClientRect().right));
    assert.ok(table <= panel, `${table} of ${panel}`);
  });

  await suite.check("overview: of the whole trace as much is in view as there is", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?panel=none`);
    const { streams } = await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json();
    const [, seen] = /([\d.]+) M insns in view/.exec(await page.textContent("#status"));
    assert.equal(seen, (Math.max(...streams.map((x) => Number(x.insns))) / 1e6).toPrecision(seen.replace(".", "").length));
  });

  await suite.check("overview: what is worth a look is linked, and leads there", {}, async (page) => {
    const { extremes } = await (await page.request.get(`${base}/api/v1/traces/${trace}/extremes`)).json();
    assert.deepEqual(extremes.map((e) => e.kind), ["interrupt", "call", "gap"]);
    await open(page, base, `#/trace/${trace}?panel=overview`);
    const rows = page.locator("table.worth tbody tr");
    await rows.nth(2).waitFor();
    assert.equal(await rows.count(), 3);
    const text = (await page.textContent("table.worth")).replace(/\s+/g, " ");
    for (const e of extremes) if (e.name !== "") assert.ok(text.includes(e.name), `${e.name} in ${text}`);
    assert.match(await rows.first().locator("td").textContent(), /^~ \d\d?0* (ns|µs)$/); // between two timestamps
    await accessible(page);
    await shot(page, "worth");
    await rows.nth(1).locator("button").click();
    await page.waitForFunction(() => /select=/.test(location.hash) && /[?&]at=/.test(location.hash));
    const went = await place(page);
    const call = extremes[1];
    const told = await (await page.request.get(`${base}/api/v1/traces/${trace}/streams/${call.stream}/call?at=${call.at}`)).json();
    const timed = went.query.get("axis") === "time" || went.from > Number(told.to);
    assert.equal(went.at, Number(timed ? told.time_from : told.from));
    await page.click("[role=tab]:has-text('Overview')");
    await rows.nth(2).locator("button").click();
    await page.waitForFunction((wanted) => location.hash.includes(wanted), `select=${extremes[2].time_from}-${extremes[2].time_to}`);
    await settle(page);
  });

  await suite.check("overview: a hint goes once it was used", { fresh: true }, async (page) => {
    const told = () => page.evaluate(() => /Click in a lane/.test(document.querySelector(".overview").textContent));
    await open(page, base, `#/trace/${trace}?panel=overview`);
    assert.equal(await told(), true);
    await page.mouse.click(500, 300);
    await page.waitForFunction(() => /[?&]at=/.test(location.hash));
    await page.goto(`${base}/#/`);
    await page.waitForSelector("table.traces");
    await open(page, base, `#/trace/${trace}?panel=overview`);
    assert.equal(await told(), false);
  });

  await suite.check("overview: the hottest functions by their own time", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?panel=overview`);
    await page.click(".overview button:has-text('By time')");
    await page.waitForFunction(() => /Own time/.test(document.querySelector("table.hot")?.textContent ?? ""));
    const told = await (await page.request.get(`${base}/api/v1/traces/${trace}/profile?weight=time`)).json();
    const [hottest] = told.functions.filter((f) => f.name !== "").sort((a, b) => b.self - a.self);
    const first = page.locator("table.hot tbody tr").first();
    assert.equal((await first.locator("button").textContent()).trim(), hottest.name);
    assert.equal(await first.locator("td").last().textContent(), `${((100 * hottest.self) / told.ran).toFixed(1)} %`);
    await accessible(page);
    await page.click(".overview button:has-text('By time')");
    await page.waitForFunction(() => /Own insns/.test(document.querySelector("table.hot").textContent));
    // Unless it is said otherwise, the axis tells by what.
    const shown = (what) => page.waitForFunction((w) => document.querySelector("table.hot th.n:last-child").textContent === w, what);
    await page.focus("#timeline");
    await page.keyboard.press("KeyT");
    await shown("Own time");
    assert.equal((await first.locator("button").textContent()).trim(), hottest.name);
    await page.keyboard.press("KeyT");
    await shown("Own insns");
  });

  await suite.check("overview: modes follow the axis", {}, async (page) => {
    const told = async (axis) => {
      await open(page, base, `#/trace/${trace}?axis=${axis}&panel=overview`);
      await page.waitForFunction((by) => [...document.querySelectorAll(".overview caption")].some((c) => c.textContent === by), axis === "time" ? "Modes by time" : "Modes");
      return page.evaluate(() => Object.fromEntries([...[...document.querySelectorAll(".overview table")].find((t) => /^Modes/.test(t.caption.textContent)).tBodies[0].rows]
        .map((r) => [r.cells[0].textContent, r.cells[1].textContent])));
    };
    // How long each mode lasted, until the next one begins.
    const times = new Map();
    for (const { name, time_last: end } of (await (await page.request.get(`${base}/api/v1/traces/${trace}`)).json()).streams) {
      const { rows } = await (await page.request.post(`${base}/api/v1/traces/${trace}/sql?rows=1000000`, {
        data: `SELECT substr(text, 3), lead(time, 1, ${end}) OVER (ORDER BY position) - time FROM event WHERE stream = '${name}' AND kind = 'mode'` })).json();
      for (const [mode, time] of rows) times.set(mode, (times.get(mode) ?? 0) + time);
    }
    const all = [...times.values()].reduce((a, b) => a + b, 0);
    const byTime = await told("time");
    for (const [mode, time] of times) {
      const [said, truly] = [parseFloat(byTime[mode].replace(/^[~<] /, "")), (100 * time) / all];
      assert.ok(byTime[mode].startsWith("<") ? truly < 2 : Math.abs(said - truly) < 2, `${mode}: ${byTime[mode]}, truly ${truly}`);
    }
    const { modes } = await (await page.request.get(`${base}/api/v1/traces/${trace}/stats`)).json();
    const insns = Object.entries(modes).map(([mode, n]) => [mode, Number(n)]);
    const sum = insns.reduce((n, [, m]) => n + m, 0);
    const byInsns = await told("insn");
    for (const [mode, n] of insns) assert.equal(parseFloat(byInsns[mode]), Number(((100 * n) / sum).toFixed(1)), mode);
  });

  await suite.check("overview: a missing image is named in the lane, and brought in there", {}, async (page) => {
    await open(page, base, `#/trace/${noimage}`);
    const address = `0x${CODE.toString(16)}`;
    await page.waitForSelector(".head button:has-text('Add image')");
    assert.match(await page.textContent(".overview"), new RegExp(`Missing images\\s*${address}`));
    await inBothThemes(page, "missing-image");
    await page.focus(".head button:has-text('Add image')");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.id === "image-file");
    const file = path.join(dir, "gaps.bin");
    assert.ok(fs.existsSync(file));
    await page.setInputFiles("#image-file", file);
    await page.fill(".imageform input[type=text]", "nonsense");
    await page.click(".imageform .action");
    await page.waitForSelector(".imageform .trouble");
    await accessible(page);
    await page.click(".overview button:has-text('Here')");
    await page.waitForFunction((a) => document.querySelector(".imageform input[type=text]").value === a, address);
    await page.click(".imageform .action");
    // The view refreshes by itself.
    await page.waitForFunction(() => /1.28 k insns/.test(document.querySelector(".head .count")?.textContent ?? ""));
    await page.waitForFunction(() => !/Missing images/.test(document.querySelector(".overview").textContent));
    await settle(page);
    assert.equal(await page.locator(".head button:has-text('Add image')").count(), 0);
    const now = await (await page.request.get(`${base}/api/v1/traces/${noimage}`)).json();
    assert.equal(now.streams[0].insns, 1280);
    await shot(page, "missing-image-added");
  });
}
