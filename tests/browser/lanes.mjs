// SPDX-License-Identifier: MIT
// Sub-lanes, and software trace as text, compared with the server's answers, which are checked against the
// simulations.
import assert from "node:assert/strict";
import { accessible, cssColour, frame, inBothThemes, open, place, settle } from "./harness.mjs";

async function json(page, base, path) {
  const reply = await page.request.get(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

/** Runs of equal colour in a row of the lanes' canvas, as [colour "#rrggbb", x0, x1]. */
function row(page, y) {
  return page.evaluate((at) => {
    const canvas = document.querySelector("canvas.base");
    const { data } = canvas.getContext("2d").getImageData(0, at, canvas.width, 1);
    const runs = [];
    for (let x = 0; x < canvas.width; x++) {
      const css = `#${((data[4 * x] << 16) | (data[4 * x + 1] << 8) | data[4 * x + 2]).toString(16).padStart(6, "0")}`;
      if (runs.length > 0 && runs[runs.length - 1][0] === css) runs[runs.length - 1][2] = x + 1;
      else runs.push([css, x, x + 1]);
    }
    return runs;
  }, y);
}

export async function laneChecks(suite, { server, trace, osd }) {
  const base = server.replace(/\/$/, "");

  await suite.check("lanes: processes and modes are where the trace says", {}, async (page) => {
    const [stream] = (await json(page, base, `traces/${trace}`)).streams;
    const [from, to] = [0, 200000];
    const told = (await json(page, base, `traces/${trace}/states?streams=${stream.name}&from=${from}&to=${to}`)).streams[stream.name];
    assert.ok(told.runs.length > 3 && told.runs.some((r) => r.context), "the trace changes processes");
    await open(page, base, `#/trace/${trace}?from=${from}&to=${to}&open=`);
    await page.focus("#timeline");
    await page.keyboard.press("p");
    await page.waitForFunction(() => document.querySelector(".subs button[aria-pressed=true]"));
    await settle(page);
    assert.equal((await place(page)).query.get("show"), "states");
    await inBothThemes(page, "lanes-states");
    // The longest run of one process has a single colour from edge to edge.
    const runs = [];
    for (const r of told.runs) {
      const last = runs[runs.length - 1];
      if (last && last.context === r.context && last.vmid === r.vmid && Boolean(last.mixed) === Boolean(r.mixed)) last.to = r.to;
      else runs.push({ ...r });
    }
    const longest = runs.filter((r) => !r.mixed).sort((a, b) => (b.to - b.from) - (a.to - a.from))[0];
    const width = await page.evaluate(() => document.querySelector("canvas.base").width);
    const x = (at) => ((at - from) / (to - from)) * width;
    const y = await page.locator(".head").first().evaluate((e) => Number(e.dataset.states));
    const seen = (await row(page, y + 1)).sort((a, b) => (b[2] - b[1]) - (a[2] - a[1]))[0];
    assert.ok(Math.abs(seen[1] - Math.max(0, x(longest.from))) <= 3 && Math.abs(seen[2] - Math.min(width, x(longest.to))) <= 3,
      JSON.stringify({ seen, longest, at: [x(longest.from), x(longest.to)] }));
  });

  await suite.check("lanes: a call stack that is cut says so, and shows all on demand", { viewport: { width: 1440, height: 455 } }, async (page) => {
    const [stream] = (await json(page, base, `traces/${trace}`)).streams;
    const width = 20000;
    const FEW = 12;
    let deepest;
    for (let from = 0; from < Number(stream.insns) && !(deepest?.depth >= FEW); from += width) {
      const told = (await json(page, base, `traces/${trace}/slices?streams=${stream.name}&from=${from}&to=${from + width}`)).streams[stream.name];
      deepest = told.slices.reduce((a, b) => (b.depth > a.depth ? b : a));
    }
    assert.ok(deepest.depth >= FEW, "the trace has deep stacks");
    const middle = (deepest.from + deepest.to) / 2;
    const half = Math.max(20, deepest.to - deepest.from);
    await open(page, base, `#/trace/${trace}?from=${Math.floor(middle - half)}&to=${Math.ceil(middle + half)}&open=${stream.name}&panel=none`);
    const button = page.locator(".head .levels").first();
    const rows = () => page.locator(".head").first().evaluate((head) => {
      const stack = document.querySelector(`.part[data-id="${head.dataset.id}/stack"]`);
      return { top: stack.offsetTop, n: Math.floor((head.offsetTop + head.offsetHeight - stack.offsetTop) / 15) };
    });
    const cut = (await button.textContent()).match(/^(\d+) of (\d+) levels$/);
    assert.equal(Number(cut[1]), (await rows()).n);
    assert.ok(Number(cut[1]) <= deepest.depth && Number(cut[2]) > deepest.depth, cut[0]);
    await inBothThemes(page, "lanes-levels");
    await button.click();
    await page.waitForFunction(() => document.querySelector(".head .levels")?.textContent === "Fewer levels");
    await settle(page);
    const all = await rows();
    assert.equal(all.n, Number(cut[2]));
    // The deepest call is drawn where it runs, and only there.
    await page.mouse.move(600, 300);
    await page.mouse.wheel(0, 2000);
    await settle(page);
    const { top } = await rows();
    const y = top + 15 * deepest.depth + 3;
    const grounds = await Promise.all(["ground", "stripe", "depth", "depth2"].map((n) => cssColour(page, n)));
    const canvas = await page.evaluate(() => document.querySelector("canvas.base").width);
    const x = (at) => ((at - Math.floor(middle - half)) / (Math.ceil(middle + half) - Math.floor(middle - half))) * canvas;
    const drawn = (await row(page, y)).find(([css, x0, x1]) => !grounds.includes(css) && x0 <= x(middle) && x(middle) < x1);
    assert.ok(drawn, `level ${deepest.depth + 1} at ${y}: ${JSON.stringify(await row(page, y))}`);
    await button.click();
    await page.waitForFunction((text) => document.querySelector(".head .levels")?.textContent === text, cut[0]);
  });

  await suite.check("lanes: counters have a scale", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?show=counters&open=`);
    await settle(page);
    assert.equal(await page.getByRole("button", { name: "Counters below the lanes" }).getAttribute("aria-pressed"), "true");
    const curves = await page.locator(".head").first().evaluate((e) => Number(e.dataset.curves));
    assert.ok(curves > 60, `room for curves: ${curves}`);
    await inBothThemes(page, "lanes-counters");
    await page.focus("#timeline");
    await page.keyboard.press("v");
    await page.waitForFunction(() => Number(document.querySelector(".head").dataset.curves) === 0);
  });

  await suite.check("lanes: what was printed is text on the lane and in the log", {}, async (page) => {
    await open(page, base, `#/trace/${osd}?axis=time&panel=log&lane=di.0.2`);
    await page.waitForSelector("ol.log li");
    const rows = () => page.locator("ol.log li").allTextContents();
    const truth = (await json(page, base, `traces/${osd}/log?streams=di.0.2&axis=time`)).streams;
    const { entries } = truth["di.0.2"];
    const lines = entries.filter((e) => e.text !== undefined).map((e) => e.text);
    const values = entries.filter((e) => e.text === undefined).map((e) => `${e.value} (${e.size} B)`);
    assert.deepEqual([...new Set(lines)], ["tick"]);
    const shown = await rows();
    assert.equal(shown.filter((r) => /osd-stm 4\s*tick/.test(r)).length, lines.length);
    assert.deepEqual(values, Array.from({ length: 10 }, (_, k) => `0x${(0xffeeddc0 + 20 + 40 * k).toString(16)} (4 B)`), "values are no text");
    assert.deepEqual(shown.filter((r) => r.includes("osd-stm 9")).map((r) => /0x.*/.exec(r)[0].trim()), values);
    // It is coupled to the cursor: a step down goes to the next line, and moves the cursor there.
    await page.locator("ol.log button").first().click();
    await page.waitForSelector("ol.log li.here");
    const first = (await place(page)).at;
    await page.focus("ol.log");
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((was) => Number(new URLSearchParams(location.hash.split("?")[1]).get("at")) > was, first);
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.querySelector("ol.log li:last-child")?.classList.contains("here"));
    await accessible(page);
    // The details of a message contain nothing that only instructions have.
    await page.click("#tab-insns");
    await page.waitForFunction(() => /Record/.test(document.querySelector("dl.details")?.textContent ?? ""));
    assert.doesNotMatch(await page.textContent("dl.details"), /PC|Function|Mode|Instruction/);
    await page.click("#tab-log");
    await page.focus("#timeline");
    await page.keyboard.press("Home");
    for (let i = 0; i < 4; i++) await page.keyboard.press("+");
    await settle(page);
    await inBothThemes(page, "lanes-log");
    // Lanes without pages or instructions do not offer them.
    const box = await page.locator("#timeline").boundingBox();
    for (let y = 40; y < 360; y += 24) {
      await page.mouse.move(box.x + 60, box.y + y);
      await frame(page);
      const told = await page.textContent("#status");
      if (/di\.0\.[234]/.test(told)) assert.doesNotMatch(told, /page 0x|insns? \d|\d insns/);
    }
  });
}
