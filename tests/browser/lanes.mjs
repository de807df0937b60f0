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

/** Each lane with anything in it draws some pixel in the view of the whole trace, and in the overview. */
async function allDrawn(page, base, id) {
  const told = await json(page, base, `traces/${id}`);
  for (const axis of ["insn", "time"]) {
    if (axis === "time" && !told.streams.some((s) => s.has_time)) continue;
    await open(page, base, `#/trace/${id}?axis=${axis}&panel=none&open=`);
    const grounds = await Promise.all(["ground", "stripe", "line", "density"].map((n) => cssColour(page, n)));
    // By lane: pixels that have another colour than what is behind it; -1: it is not in sight.
    const drawn = await page.evaluate((none) => {
      const others = (canvas, y, h) => {
        const { data } = canvas.getContext("2d").getImageData(0, y, canvas.width, h);
        let n = 0;
        for (let i = 0; i < data.length; i += 4) if (!none.includes(`#${((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]).toString(16).padStart(6, "0")}`)) n++;
        return n;
      };
      const [canvas, map] = ["canvas.base", "canvas.minimap"].map((c) => document.querySelector(c));
      const heads = [...document.querySelectorAll(".head")];
      return Object.fromEntries(heads.map((head, i) => {
        const h = Math.min(head.offsetHeight - 2, canvas.height - head.offsetTop - 2);
        const row = (map.height - 8) / heads.length;
        // By time what hardly ran is low. The window of the view frames the overview.
        return [head.dataset.id.split("/").at(-1), h < 4 ? [-1, -1] : [others(canvas, head.offsetTop + 1, h), others(map, Math.round(2 + (i + 1) * row) - 2, 1) - 2]];
      }));
    }, grounds);
    for (const s of told.streams) {
      const [lane, map] = drawn[s.name] ?? [-1, -1];
      if (Number(s.insns) === 0 || (axis === "time" && !s.has_time) || lane < 0) continue;
      assert.ok(lane >= 1, `${id}, ${axis}: ${s.name} with ${s.insns} draws ${lane} pixels`);
      if (told.streams.length <= 4) assert.ok(map >= 1, `${id}, ${axis}: ${s.name} with ${s.insns} draws ${map} pixels in the overview`);
    }
  }
}

/** Over the mock server. */
export async function fewChecks(suite, mock) {
  await suite.check("lanes: six records beside 400 million instructions are a pixel", {}, async (page) => {
    await allDrawn(page, mock.url, "few");
  });
}

export async function laneChecks(suite, { server, trace, osd, cortex, bare }) {
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

  await suite.check("lanes: whatever exists is at least one pixel", {}, async (page) => {
    for (const id of [trace, osd, cortex, bare].filter(Boolean)) await allDrawn(page, base, id);
  });

  await suite.check("lanes: a wider window has more names, and instructions their text from 24 pixels", { fresh: true }, async (page) => {
    await page.addInitScript(() => {
      window.labels = [];
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function noted(text, x, y, ...more) {
        if (this.canvas.matches?.("canvas.base") && y > 24) window.labels.push([text, x, y, this.font]);
        return fill.call(this, text, x, y, ...more);
      };
    });
    /** What is written in the first lane's band of functions, or all. */
    const written = async (width, hash) => {
      await page.setViewportSize({ width, height: 860 });
      await page.emulateMedia({ colorScheme: "light" });
      await open(page, base, hash);
      await page.evaluate(() => { window.labels.length = 0; });
      await page.emulateMedia({ colorScheme: "dark" }); // draws it anew
      await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
      await settle(page);
      return page.evaluate(() => window.labels);
    };
    for (const span of [4000, 20000, 100000]) {
      const hash = `#/trace/${trace}?axis=insn&from=1000000&to=${1000000 + span}&panel=none&open=`;
      const names = (all) => all.filter(([, , , font]) => font.startsWith("500 11px")).length;
      const [few, many] = [names(await written(1280, hash)), names(await written(2560, hash))];
      assert.ok(many > few, `${span} in view: ${few} names at 1280, ${many} at 2560`);
    }
    const [stream] = (await json(page, base, `traces/${trace}`)).streams;
    const width = 1280 - 192;
    const n = Math.floor(width / 25);
    const rows = await json(page, base, `traces/${trace}/streams/${stream.name}/insns?from=1000&count=${n}`);
    const all = (await written(1280, `#/trace/${trace}?axis=insn&from=1000&to=${1000 + n}&panel=none&open=`)).map(([t]) => t);
    const short = rows.map((r) => r.text.split(" ")[0]).filter((m) => m.length <= 3);
    assert.ok(short.length > 5 && short.every((m) => all.includes(m)), `${short} in ${all}`);
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
