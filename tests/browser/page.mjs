// SPDX-License-Identifier: MIT
// The page with the mock server: all of its states, gestures, budgets, accessibility.
import assert from "node:assert/strict";
import { accessible, colours, cssColour, frame, inBothThemes, moved, open, place, settle, shot, traffic, WAIT_MS, wheel } from "./harness.mjs";
import { freePort } from "./lab.mjs";
import { listen } from "./mock/server.mjs";

const TRACE = "#/trace/soak-2026-01-02";
/** A position in the first lane's function band. */
const LANE = [600, 180];

export async function pageChecks(suite, mock) {
  const { url } = mock;
  await suite.check("the list of traces", {}, async (page) => {
    await page.goto(url);
    await page.waitForSelector("table.traces tbody tr");
    assert.equal(await page.locator("table.traces tbody tr").count(), 4);
    assert.match(await page.textContent("tbody"), /soak-2026-01-02[\s\S]*complete[\s\S]*2\.66 G/);
    assert.match(await page.textContent("tbody"), /no synchronisation packet/);
    await inBothThemes(page, "list");
  });

  await suite.check("a whole trace", {}, async (page) => {
    await open(page, url, TRACE);
    assert.equal(await page.locator(".head").count(), 4);
    // With several lanes, each is 50 pixels high.
    const below = await page.locator(".head .gaps").evaluateAll((all) => all.map((g) =>
      g.getBoundingClientRect().bottom - g.closest(".head").getBoundingClientRect().top));
    assert.ok(below.length > 0 && Math.max(...below) <= 50, `counts of gaps are cut off: ${below}`);
    await inBothThemes(page, "trace", async () => {
      const seen = await colours(page);
      assert.ok(seen[await cssColour(page, "lost")] > 100, "gaps are marked");
      assert.ok(Object.keys(seen).length > 20, "functions have colours");
    });
  });

  await suite.check("an index behind the decoding is drawn as such, and fills in", {}, async (page) => {
    const span = "from=80000000&to=420000000&panel=none";
    const dots = () => page.evaluate(() => {
      const muted = getComputedStyle(document.documentElement).getPropertyValue("--muted").trim();
      const canvas = document.querySelector("canvas.base");
      const head = document.querySelector(".head").getBoundingClientRect();
      const { data } = canvas.getContext("2d").getImageData(0, 24, canvas.width, Math.floor(head.height));
      const wanted = [1, 3, 5].map((i) => parseInt(muted.slice(i, i + 2), 16));
      const xs = [];
      for (let i = 0; i < data.length; i += 4) if (wanted.every((v, k) => data[i + k] === v)) xs.push((i / 4) % canvas.width);
      return { first: Math.min(...xs) / canvas.width, n: xs.length };
    });
    await open(page, url, `#/trace/behind?axis=insn&${span}`);
    const before = await dots();
    assert.ok(before.n > 500, `${before.n} pixels of what is being indexed`);
    assert.ok(Math.abs(before.first - 20 / 340) < 0.02, `begins at ${before.first}`);
    await page.mouse.move(900, 150);
    await page.waitForSelector(".tip");
    assert.match(await page.textContent(".tip"), /being indexed/);
    await inBothThemes(page, "behind");
    mock.grow(150e6);
    await page.mouse.move(900, 700);
    await page.reload();
    await open(page, url, `#/trace/behind?axis=insn&${span}&at=1000`);
    const after = await dots();
    assert.ok(Math.abs(after.first - 170 / 340) < 0.02, `begins at ${after.first} then`);
    await open(page, url, "#/trace/behind?axis=time&panel=none");
    assert.ok((await dots()).n > 300, "by time, too");
    await page.keyboard.press("?");
    assert.match(await page.textContent(".legend"), /being indexed/);
  });

  await suite.check("call stacks", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=100060000&at=100030500`);
    await page.waitForSelector(".insn.here");
    await page.mouse.move(520, 430);
    await page.waitForSelector(".tip");
    await inBothThemes(page, "stacks");
  });

  await suite.check("single instructions", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100030490&to=100030502&at=100030495`);
    const text = await page.textContent(".insn.here");
    assert.match(text, /100,030,495/);
    assert.match(await page.textContent(".details"), /0xffff[0-9a-f]{12}/);
    await inBothThemes(page, "instructions");
  });

  await suite.check("statistics of a selection", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=100060000`);
    await page.mouse.move(300, 131);
    await page.mouse.down();
    await page.mouse.move(500, 132, { steps: 3 });
    await page.mouse.up();
    await page.waitForSelector("table.hot tbody tr");
    const { query } = await place(page);
    assert.match(query.get("select"), /^\d+-\d+$/);
    const [from, to] = query.get("select").split("-");
    const links = await page.locator(".links a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    assert.deepEqual(links, ["zstf", "stf", "text"].map((f) =>
      `api/v1/traces/soak-2026-01-02/streams/cs.10/range?unit=insn&from=${from}&to=${to}&format=${f}`));
    await inBothThemes(page, "statistics");
    await page.keyboard.press("KeyZ");
    const zoomed = await place(page);
    assert.ok(zoomed.from <= Number(from) && zoomed.to >= Number(to) && zoomed.to - zoomed.from < 20000, zoomed.hash);
    await page.keyboard.press("Escape");
    assert.equal((await place(page)).query.get("select"), null);
  });

  await suite.check("search", {}, async (page) => {
    await open(page, url, TRACE);
    await page.keyboard.press("/");
    await page.keyboard.type("event:ga");
    await page.waitForSelector("#offers [role=option]");
    await inBothThemes(page, "offers");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#hits .gridbody [role=row]");
    await page.waitForFunction(() => /event:gap: 6\d/.test(document.querySelector(".tabpanel").textContent));
    const first = (await moved(page, undefined)).at;
    await page.keyboard.press("Enter");
    const second = (await moved(page, first)).at;
    assert.ok(second > first);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Shift+KeyN");
    assert.equal((await moved(page, second)).at, first);
    assert.ok((await colours(page, "canvas.minimap"))[await cssColour(page, "hit")] > 20, "hits on the overview");
    await inBothThemes(page, "search");
  });

  await suite.check("help and the table of lanes", {}, async (page) => {
    await open(page, url, TRACE);
    await page.keyboard.press("Shift+?");
    await page.waitForSelector("dialog[open]");
    assert.match(await page.textContent("dialog"), /Zoom in[\s\S]*Next hit/);
    await inBothThemes(page, "help");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("KeyL");
    await page.waitForSelector(".lanes tbody tr");
    assert.equal(await page.locator(".lanes tbody tr").count(), 4);
    await inBothThemes(page, "table");
  });

  await suite.check("call stacks have colours at every zoom, and finer ones come while zooming in", { fresh: true }, async (page) => {
    const net = traffic(page);
    const asked = () => net.seen.filter((r) => r.path.endsWith("/slices")).length;
    const coloured = async () => {
      const seen = await colours(page);
      const grey = await Promise.all(["ground", "depth", "depth2", "line", "stripe"].map((n) => cssColour(page, n)));
      const total = Object.values(seen).reduce((a, b) => a + b, 0);
      return Object.entries(seen).filter(([c]) => !grey.includes(c)).reduce((n, [, k]) => n + k, 0) / total;
    };
    const until = async (what) => {
      for (let i = 0; i < 50 && await coloured() < 0.1; i++) await settle(page);
      assert.ok(await coloured() >= 0.1, `${what}: grey, ${await coloured()}`);
    };
    await open(page, url, TRACE);
    await until("the whole trace");
    // A wide view has too many to list; that answer must not be reused for a narrower one.
    const before = asked();
    for (const [from, to] of [[2220606, 4420606], [2420606, 2620606], [2520606, 2520806], [2520700, 2520720]]) {
      await page.evaluate((hash) => { location.hash = hash; }, `${TRACE}?from=${from}&to=${to}`);
      await until(`${from} to ${to}`);
    }
    assert.ok(asked() >= before + 2, `asked ${asked() - before} times`);
  });

  await suite.check("the pointer's way over the lanes does not paint them again", { fresh: true }, async (page) => {
    await page.addInitScript(() => {
      window.painted = 0;
      const draw = CanvasRenderingContext2D.prototype.drawImage;
      CanvasRenderingContext2D.prototype.drawImage = function counted(...args) {
        window.painted++;
        return draw.apply(this, args);
      };
    });
    await open(page, url, `${TRACE}?from=2000000&to=2100000`);
    for (let last = -1, now = 0; now !== last;) {
      last = now;
      await settle(page);
      now = await page.evaluate(() => window.painted);
    }
    const before = await page.evaluate(() => window.painted);
    assert.ok(before > 0);
    for (let i = 0; i < 40; i++) await page.mouse.move(300 + 10 * i, 235 + i);
    await page.waitForFunction(() => document.querySelector("#status .strong"));
    const first = await page.textContent("#status");
    await page.mouse.move(420, 275);
    await page.waitForFunction((text) => document.querySelector("#status").textContent !== text, first);
    assert.equal(await page.evaluate(() => window.painted), before);
  });

  await suite.check("time as the axis, gaps hatched between", {}, async (page) => {
    await open(page, url, `${TRACE}?axis=time`);
    await shot(page, "time-whole");
    // Trace is lost after the 13th block of this lane.
    await page.keyboard.press("/");
    await page.keyboard.type("event:gap\n");
    await page.waitForSelector("#hits .gridbody [role=row]");
    await page.keyboard.press("Escape");
    for (let i = 0; i < 8; i++) await page.keyboard.press("+");
    await settle(page);
    const seen = await colours(page);
    assert.ok(seen[await cssColour(page, "lost")] > 300, "the gap is hatched");
    await shot(page, "time-gap");
  });

  await suite.check("the axis changes and the place stays", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=100060000&at=100030500`);
    await page.keyboard.press("KeyT");
    await page.waitForFunction(() => location.hash.includes("axis=time"));
    const timed = await place(page);
    assert.equal(timed.at, 124147748);
    assert.ok(timed.from < timed.at && timed.to > timed.at && timed.to - timed.from < 1e5);
    await page.keyboard.press("KeyT");
    await page.waitForFunction(() => location.hash.includes("axis=insn"));
    assert.equal((await place(page)).at, 100030500);
  });

  await suite.check("keys: zoom, move, ends, cursor", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=200000000`);
    await page.focus("#timeline");
    const step = async (key) => { await page.keyboard.press(key); return place(page); };
    let now = await step("KeyW");
    assert.ok(now.to - now.from < 1e8 && now.from > 1e8);
    const narrow = now.to - now.from;
    now = await step("KeyS");
    assert.ok(now.to - now.from > narrow);
    const before = now;
    now = await step("KeyD");
    assert.ok(now.from > before.from && Math.abs(now.to - now.from - (before.to - before.from)) < 2);
    const panned = now;
    now = await step("ArrowLeft");
    assert.ok(now.from < panned.from);
    now = await step("Home");
    assert.equal(now.from, 0);
    now = await step("End");
    assert.ok(now.to >= 1e9 && now.to < 1.01e9);
    now = await step("Digit0");
    assert.equal(now.from, undefined);
    await page.mouse.click(...LANE);
    const at = (await place(page)).at;
    now = await step(".");
    assert.ok(now.at > at);
    const back = (await step(",")).at;
    assert.match(await page.textContent("[role=status]"), /cs\.10, insn/);
    await page.keyboard.press("]");
    await moved(page, back);
    await page.evaluate(() => { location.hash = location.hash.replace(/lane=[^&]*/, "lane=cs.10"); });
    now = await step("ArrowDown");
    assert.equal(now.query.get("lane"), "cs.12");
  });

  await suite.check("held keys glide", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=200000000`);
    await page.focus("#timeline");
    await page.keyboard.down("KeyW");
    await page.waitForFunction(() => {
      const [, wide, unit] = /([\d.]+) ?([kMG]?) insns in view/.exec(document.querySelector("footer").textContent) ?? [];
      return unit === "k" || (unit === "M" && Number(wide) < 30);
    });
    await page.keyboard.up("KeyW");
    const { from, to } = await place(page);
    assert.ok(to - from < 3e7, `${to - from}`);
  });

  await suite.check("wheel zooms at the pointer and goes along; drag moves", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=200000000`);
    await page.mouse.move(...LANE);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    const zoomed = await place(page);
    const width = await page.evaluate(() => document.querySelector(".plot").clientWidth);
    const left = await page.evaluate(() => document.querySelector(".plot").getBoundingClientRect().left);
    const under = (p) => p.from + ((LANE[0] - left) / width) * (p.to - p.from);
    const wanted = 1e8 + ((LANE[0] - left) / width) * 1e8;
    assert.ok(zoomed.to - zoomed.from < 5e7);
    assert.ok(Math.abs(under(zoomed) - wanted) < 1e5, "the place under the pointer stays");
    await page.mouse.wheel(200, 0);
    const moved = await place(page);
    assert.ok(moved.from > zoomed.from);
    await page.mouse.down();
    await page.mouse.move(LANE[0] + 100, LANE[1], { steps: 4 });
    await page.mouse.up();
    const dragged = await place(page);
    const by = ((moved.to - moved.from) * 100) / width;
    assert.ok(Math.abs(moved.from - dragged.from - by) < by / 20, "the trace follows the hand");
  });

  await suite.check("the overview's window can be dragged", {}, async (page) => {
    await open(page, url, `${TRACE}?from=100000000&to=200000000`);
    const box = await page.locator("canvas.minimap").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 20);
    const { from, to } = await place(page);
    assert.ok(Math.abs((from + to) / 2 - 5e8) < 5e6);
    await page.mouse.dblclick(box.x + box.width / 2, box.y + 20);
    assert.equal((await place(page)).from, undefined);
  });

  await suite.check("a link restores what was seen", {}, async (page) => {
    const hash = `${TRACE}?axis=time&from=124000000&to=124300000&lane=cs.12&at=124147748&select=124100000-124200000&find=event%3Agap&panel=stats`;
    await open(page, url, hash);
    await page.waitForSelector("table.hot");
    assert.equal(await page.inputValue(".search input"), "event:gap");
    assert.match(await page.textContent(".head.selected"), /cs\.12/);
    await page.keyboard.press("KeyL");
    const { query } = await place(page);
    assert.equal(query.get("select"), "124100000-124200000");
    await page.goto(`${url}/#/`);
    await page.waitForSelector("table.traces");
    await page.goBack();
    await page.waitForSelector("#timeline");
    assert.match(await page.textContent(".head.selected"), /cs\.12/);
  });

  await suite.check("the list of instructions: wheel, keys, click", {}, async (page) => {
    await open(page, url, `${TRACE}?at=500000000`);
    await page.waitForSelector(".insn.here");
    await page.hover(".insns");
    await page.mouse.wheel(0, 1900);
    await page.waitForFunction(() => /500,000,09\d/.test(document.querySelector(".insns").textContent));
    await page.locator(".insn").nth(3).click();
    const at = (await place(page)).at;
    assert.ok(at > 500000050);
    await page.focus(".insns");
    await page.keyboard.press("ArrowDown");
    assert.equal((await place(page)).at, at + 1);
    await page.keyboard.press("PageDown");
    assert.ok((await place(page)).at > at + 10);
    assert.ok(await page.locator(".insn").count() < 80, "only what is in sight exists");
  });

  await suite.check("42 lanes scroll, in stripes of sixteen", { fresh: true }, async (page) => {
    const net = traffic(page);
    await open(page, url, "#/trace/farm-42");
    const stripes = new Set(net.tiles().map((r) => r.path));
    assert.ok(stripes.size > 0);
    await page.mouse.move(...LANE);
    await page.mouse.wheel(0, 5000);
    await settle(page);
    assert.ok(await page.locator(".head").last().isVisible());
    await accessible(page);
    await shot(page, "lanes-42");
  });

  await suite.check("live: lanes grow, following pins the edge, a hand unpins it", {}, async (page) => {
    await open(page, url, "#/trace/rig-a-live?from=30000000&to=31000000");
    const insns = () => page.textContent(".head .count");
    const before = await insns();
    await page.waitForFunction((text) => document.querySelector(".head .count").textContent !== text, before);
    await page.keyboard.press("KeyF");
    await page.waitForFunction(() => document.querySelector(".follow.on"));
    await page.waitForFunction(() => location.hash.includes("follow=zoom"));
    const painted = async () => {
      const seen = await colours(page);
      return 1 - seen[await cssColour(page, "ground")] / Object.values(seen).reduce((a, b) => a + b, 0);
    };
    for (const until = Date.now() + WAIT_MS; await painted() <= 0.1 && Date.now() < until;) await frame(page);
    const one = await place(page);
    assert.equal(one.query.get("follow"), "zoom");
    assert.ok(Math.abs(one.to - one.from - 1e6) < 2000, "the zoom is kept");
    assert.ok(await painted() > 0.1, "the edge is drawn");
    await shot(page, "follow");
    await page.selectOption(".followbox select", "10000");
    await page.waitForFunction(() => /10\.0 k insns in view/.test(document.querySelector("footer").textContent));
    await page.mouse.move(...LANE);
    await page.mouse.wheel(0, -300);
    await page.waitForFunction(() => !document.querySelector(".follow.on"));
  });

  await suite.check("motion is reduced where asked: following jumps", { reducedMotion: "reduce" }, async (page) => {
    await open(page, url, "#/trace/rig-a-live?from=1000000&to=2000000");
    await page.keyboard.press("KeyF");
    await page.waitForFunction(() => location.hash.includes("follow=zoom"));
  });

  await suite.check("the theme can be chosen and is kept", { fresh: true, colorScheme: "light" }, async (page) => {
    await page.goto(url);
    await page.waitForSelector("table.traces");
    await page.keyboard.press("KeyK");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.reload();
    await page.waitForSelector("table.traces");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  });

  await suite.check("what is wrong with a trace stands above all else, as a whole", {}, async (page) => {
    await page.goto(`${url}/#/trace/broken-upload?panel=overview`);
    await page.waitForSelector(".overview .trouble");
    assert.equal(await page.textContent(".overview > :first-child"), "offset 0x1a2b: no synchronisation packet in 64 KiB");
    const [fits, wide] = await page.locator(".overview .trouble").evaluate((e) => [e.scrollWidth <= e.clientWidth, getComputedStyle(e).whiteSpace]);
    assert.ok(fits && wide !== "nowrap");
    await accessible(page);
    await shot(page, "trouble");
  });

  await suite.check("a trace that is not there", {}, async (page, troubles) => {
    await page.goto(`${url}/#/trace/nothing`);
    await page.waitForSelector(".trouble");
    assert.match(await page.textContent(".trouble"), /no trace “nothing”/);
    troubles.length = 0; // the browser logs failed requests
  });

  await suite.check("a server that goes away and comes back, a trace that is deleted", { fresh: true }, async (page, troubles) => {
    const port = await freePort();
    const first = await listen({}, port);
    await open(page, first.url, TRACE);
    await first.close();
    await page.waitForSelector("header .badge.failed");
    // What cannot be fetched is requested again while there is no answer, and arrives when there is one.
    await page.evaluate(() => { location.hash = "#/trace/farm-42"; });
    await page.waitForSelector(".trouble");
    const second = await listen({}, port);
    try {
      await page.waitForSelector("#timeline");
      await settle(page);
      assert.equal(await page.locator(".trouble").count(), 0);
      assert.match(await page.textContent("header .badge"), /complete/);
      second.remove("farm-42");
      await page.waitForFunction(() => /deleted/.test(document.querySelector("header .badge").textContent));
    } finally {
      await second.close();
    }
    troubles.length = 0; // the browser logs failed requests
  });

  await suite.check("nothing inline, nothing from elsewhere", { fresh: true }, async (page) => {
    const net = [];
    page.on("request", (r) => net.push(r.url()));
    await open(page, url, `${TRACE}?from=100030490&to=100030502&at=100030495`);
    assert.deepEqual(net.filter((u) => !u.startsWith(url)), []);
    const html = await (await page.request.get(`${url}/`)).text();
    assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/);
  });

}

/** Requests and bytes are asserted, times only printed. */
export async function budgetChecks(suite, { url }) {
  await suite.check("budget: a trace opens with 10 requests and 250 KB, the page included", { fresh: true }, async (page) => {
    const net = traffic(page);
    const began = Date.now();
    await open(page, url, TRACE);
    const bytes = await net.bytes();
    console.log(`      opened: ${net.seen.length} requests, ${(bytes / 1024).toFixed(0)} KiB, ${Date.now() - began} ms to rest`);
    // The event stream is still open and does not count as finished.
    assert.ok(net.seen.length + 1 <= 10, net.seen.map((r) => r.path).join("\n"));
    assert.ok(bytes <= 250 * 1024, `${bytes}`);
  });

  await suite.check("budget: 1920 pixels need 6 stripes and 250 KB", { fresh: true, viewport: { width: 2530, height: 900 } }, async (page) => {
    const net = traffic(page);
    await open(page, url, `${TRACE}?from=100000000&to=200000000&panel=none`);
    const first = net.tiles().filter((r) => !/\/insn\/1[0-9]\//.test(r.path));
    const bytes = net.tiles().reduce((n, r) => n + r.bytes, 0);
    assert.ok(first.length <= 6 && first.length > 0, first.map((r) => r.path).join("\n"));
    assert.ok(bytes <= 250 * 1024, `${bytes}`);
  });

  await suite.check("budget: panning asks once per 512 pixels, panning back never", { fresh: true, viewport: { width: 1920, height: 900 } }, async (page) => {
    const net = traffic(page);
    await open(page, url, `${TRACE}?from=100000000&to=100400000&panel=none`);
    net.reset();
    await page.mouse.move(...LANE);
    const pixels = 3600;
    // Requests abandoned before their answer are not cached: proceed only as fast as the server answers.
    for (let i = 0; i < 9; i++) {
      await wheel(page, LANE, 4, { deltaX: 100 });
      await settle(page);
    }
    const tiles = net.tiles().length;
    assert.ok(tiles > 0 && tiles <= Math.ceil(pixels / 512) + 1, `${tiles} tiles for ${pixels} px`);
    net.reset();
    await wheel(page, LANE, 36, { deltaX: -100 });
    await settle(page);
    assert.equal(net.tiles().length, 0);
  });

  await suite.check("budget: zooming from the whole to instructions and back", { fresh: true }, async (page) => {
    const net = traffic(page);
    await page.addInitScript(() => {
      // The drawing times of frames, and the intervals between them.
      const request = window.requestAnimationFrame.bind(window);
      window.draws_ = [];
      window.frames_ = [];
      window.requestAnimationFrame = (callback) => request((now) => {
        const began = performance.now();
        callback(now);
        window.draws_.push(performance.now() - began);
      });
      let last = performance.now();
      const tick = (now) => { window.frames_.push(now - last); last = now; request(tick); };
      request(tick);
    });
    await open(page, url, `${TRACE}?panel=none`);
    await wheel(page, LANE, 60, { deltaY: -70, ctrlKey: true });
    await settle(page);
    const deep = await place(page);
    assert.ok(deep.to - deep.from < 1000, deep.hash);
    await shot(page, "zoomed");
    await wheel(page, LANE, 60, { deltaY: 70, ctrlKey: true });
    await settle(page);
    const told = async (key) => {
      const all = (await page.evaluate((k) => window[k], key)).sort((a, b) => a - b);
      return ["p50", "p95", "max"].map((n, i) =>
        `${n} ${all[Math.min(all.length - 1, Math.floor(all.length * [0.5, 0.95, 1][i]))].toFixed(1)}`).join(" ");
    };
    console.log(`      zoom: ${net.tiles().length} tiles, draw ${await told("draws_")} ms, frames ${await told("frames_")} ms`);
    assert.ok(net.tiles().length <= 24, `${net.tiles().length}`);
  });
}
