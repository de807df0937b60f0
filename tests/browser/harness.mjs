// SPDX-License-Identifier: MIT
// A small runner: named checks in order on one browser, with the total at the end; with TL_SHOTS=1, screenshots of
// what was checked in the build folder.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.resolve(here, "../..");
export const build = process.env.TL_BUILD_DIR ?? path.join(root, "build");
const require = createRequire(path.join(build, "web/package.json"));
const { chromium } = require("playwright-core");
const AXE = require.resolve("axe-core/axe.min.js");
const SHOTS = path.join(build, "screenshots");
/** Only reached if something hangs, since machines can be busy. */
const LIMIT_MS = 900000;
export const WAIT_MS = 120000;
const LEAVE_MS = 20000;
/** TL_SLOWER=6: the page gets a sixth of the processor's speed, as on a slow machine. */
const SLOWER = Number(process.env.TL_SLOWER ?? 1);

// One renderer, so that each check reuses the one that has already compiled the page; new ones would take a fifth of
// the total time.
const FLAGS = ["--headless", "--renderer-process-limit=1", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function launch() {
  return chromium.launch({ executablePath: process.env.TL_CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** Events that a check may listen to; listeners are removed after it. */
const HEARD = ["console", "pageerror", "request", "requestfinished"];

/** Checks run one after another; a failed one does not stop later ones. */
export class Suite {
  constructor(browser) {
    this.browser = browser;
    this.passed = 0;
    this.failed = [];
    this.skipped = 0;
    this.pages = new Map(); // by the options of their context
    fs.mkdirSync(SHOTS, { recursive: true });
  }

  /**
   * A page that shows no trace and has nothing stored. One with the same options is reused, as it is loaded: to load
   * it for each check would take a fifth more of the total time.
   */
  async page({ fresh, ...options }) {
    const key = JSON.stringify(options);
    const known = fresh ? undefined : this.pages.get(key);
    if (known) {
      await known.mouse.move(0, 0);
      await known.unrouteAll();
      await known.emulateMedia({ colorScheme: options.colorScheme ?? "light" });
      return known;
    }
    const context = await this.browser.newContext({
      viewport: { width: 1440, height: 860 }, ignoreHTTPSErrors: true, ...options,
    });
    context.setDefaultTimeout(WAIT_MS); // of its page, and of requests without one
    const page = await context.newPage();
    if (SLOWER > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
    if (!fresh) this.pages.set(key, page);
    return page;
  }

  /**
   * `body` gets a page in its initial state, which must log no error. `options` are those of its
   * context; `fresh`: a page of its own with nothing cached, for checks that count bytes or hook
   * scripts.
   */
  async check(name, options, body) {
    const troubles = [];
    let timer;
    let page;
    const begun = performance.now();
    const took = () => `${((performance.now() - begun) / 1000).toFixed(1)} s`;
    let reusable = false;
    try {
      page = await this.page(options);
      page.on("pageerror", (e) => troubles.push(`error: ${e.message}`));
      page.on("console", (m) => { if (m.type() === "error") troubles.push(`console: ${m.text()} ${m.location().url}`); });
      await Promise.race([
        body(page, troubles),
        new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("took too long")), LIMIT_MS); }),
      ]);
      assert.deepEqual(troubles, []);
      this.passed++;
      reusable = !options.fresh;
      console.log(`ok    ${name} (${took()})`);
    } catch (error) {
      this.failed.push(name);
      console.log(`FAIL  ${name} (${took()})\n      ${String(error.stack ?? error).split("\n").slice(0, 14).join("\n      ")}`);
      await page?.screenshot({ path: path.join(SHOTS, `failed-${this.failed.length}.png`) }).catch(() => {});
    } finally {
      clearTimeout(timer);
      for (const event of HEARD) page?.removeAllListeners(event);
      // A page that shows a live trace would go on drawing, and all pages share one renderer.
      if (reusable) reusable = await within(LEAVE_MS, leave(page));
      if (page && !reusable) {
        for (const [key, kept] of this.pages) if (kept === page) this.pages.delete(key);
        await page.context().close();
      }
    }
  }

  skip(name, why) {
    this.skipped++;
    console.log(`skip  ${name}: ${why}`);
  }

  end() {
    console.log(`browser: ${this.passed} passed, ${this.failed.length} failed, ${this.skipped} skipped`);
    return this.failed.length === 0 ? 0 : 1;
  }
}

/** A screenshot for people to look at, if requested by TL_SHOTS=1. */
export async function shot(page, name) {
  if (!process.env.TL_SHOTS) return;
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}

/** Wait until no request is pending, the link is up to date, and the page is drawn accordingly. */
export async function settle(page) {
  await page.evaluate((limit) => new Promise((done, fail) => {
    const until = performance.now() + limit;
    let still = 0;
    const look = () => {
      still = document.querySelector(".busy.on") ? 0 : still + 1;
      if (still === 3) done();
      else if (performance.now() > until) fail(new Error("it does not come to rest"));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }), WAIT_MS);
}

/** Wait until the last action is drawn. */
export function frame(page) {
  return page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
}

/** Turn the wheel over the lanes once per frame, `times` times; with `ctrlKey` it zooms. */
export function wheel(page, [x, y], times, turn) {
  return page.evaluate(async (how) => {
    const canvas = document.querySelector("#timeline");
    for (let i = 0; i < how.times; i++) {
      canvas.dispatchEvent(new WheelEvent("wheel", {
        bubbles: true, cancelable: true, clientX: how.x, clientY: how.y, ...how.turn,
      }));
      await new Promise(requestAnimationFrame);
    }
  }, { x, y, times, turn });
}

/** Whatever is open is closed, and what is stored forgotten. */
async function leave(page) {
  await page.evaluate(async () => {
    // Nothing is stored before anything was opened.
    if (location.origin === "null") return;
    localStorage.clear();
    if (location.hash.startsWith("#/trace/")) location.hash = "#/";
    while (document.querySelector("#timeline, dialog[open]")) await new Promise(requestAnimationFrame);
    document.activeElement?.blur();
  });
}

/** Whether something succeeds in time. */
async function within(ms, promise) {
  let timer;
  const late = new Promise((done) => { timer = setTimeout(done, ms, false); });
  const done = await Promise.race([promise.then(() => true, () => false), late]);
  clearTimeout(timer);
  return done;
}

/** Open a trace, by instructions if `hash` says nothing else; a page of the same server is not loaded again. */
export async function open(page, base, hash) {
  const axis = /[?&]axis=/.test(hash) ? "" : `${hash.includes("?") ? "&" : "?"}axis=insn`;
  await page.goto(`${base}/${hash}${axis}`);
  await page.waitForSelector("#timeline");
  await settle(page);
}

/** No violation found by axe, by all its rules or the given ones. */
export async function accessible(page, rules) {
  if (!await page.evaluate(() => window.axe !== undefined)) await page.evaluate(fs.readFileSync(AXE, "utf8"));
  const violations = await page.evaluate(async (only) => {
    const result = await window.axe.run(document, {
      resultTypes: ["violations"], selectors: false, iframes: false, preload: false, ...(only && { runOnly: only }),
    });
    return result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")}`);
  }, rules);
  assert.deepEqual(violations, []);
}

/**
 * Accessible and visible in both themes, which differ in colours; the page's theme is restored.
 * `each` is called in each theme, if given.
 */
export async function inBothThemes(page, name, each = async () => {}) {
  const had = await page.evaluate(() => document.documentElement.dataset.theme);
  await each();
  await accessible(page);
  await shot(page, `${name}-${had}`);
  for (const theme of [had === "light" ? "dark" : "light", had]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.waitForFunction((t) => document.documentElement.dataset.theme === t, theme);
    if (theme === had) break;
    await settle(page);
    await each();
    await accessible(page, ["color-contrast"]);
    await shot(page, `${name}-${theme}`);
  }
}

/** Pixels of the lanes' canvas below the ruler, as counts by colour. */
export function colours(page, selector = "canvas.base") {
  return page.evaluate((s) => {
    const canvas = document.querySelector(s);
    const { data } = canvas.getContext("2d").getImageData(0, 24, canvas.width, canvas.height - 24);
    const pixels = new Uint32Array(data.buffer);
    const counts = new Map();
    // Neighbours mostly have the same colour.
    for (let i = 0, begun = 0; i < pixels.length; begun = i) {
      const pixel = pixels[i];
      while (i < pixels.length && pixels[i] === pixel) i++;
      counts.set(pixel, (counts.get(pixel) ?? 0) + i - begun);
    }
    const name = (p) => `#${[p, p >> 8, p >> 16].map((x) => (x & 255).toString(16).padStart(2, "0")).join("")}`;
    const named = new Map(); // regardless of their opacity
    for (const [pixel, n] of counts) named.set(name(pixel), (named.get(name(pixel)) ?? 0) + n);
    return Object.fromEntries([...named].sort((a, b) => b[1] - a[1]).slice(0, 64));
  }, selector);
}

/** A named colour of the style sheet as "#rrggbb". */
export function cssColour(page, name) {
  return page.evaluate((n) => getComputedStyle(document.documentElement).getPropertyValue(`--${n}`).trim(), name);
}

/** The view as given by the URL, once it is up to date. */
export async function place(page) {
  await settle(page);
  const hash = await page.evaluate(() => location.hash);
  const query = new URLSearchParams(hash.split("?")[1] ?? "");
  const number = (key) => (query.has(key) ? Number(query.get(key)) : undefined);
  return { hash, query, from: number("from"), to: number("to"), at: number("at") };
}

/** The position once the cursor is no longer at `at`; fails after ten seconds. */
export async function moved(page, at) {
  await page.waitForFunction((was) => {
    const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
    return query.has("at") && Number(query.get("at")) !== was;
  }, at);
  return place(page);
}

/** Count requests and their bytes from now on. */
export function traffic(page) {
  const seen = [];
  const pending = [];
  page.on("requestfinished", (request) => {
    const url = new URL(request.url());
    const entry = { path: url.pathname, bytes: 0 };
    seen.push(entry);
    pending.push(request.sizes().then((s) => { entry.bytes = s.responseBodySize; }, () => {}));
  });
  const without = (end) => seen.filter((r) => end === undefined || !r.path.endsWith(end));
  return {
    seen,
    tiles: () => seen.filter((r) => r.path.includes("/tiles/")),
    /** What was asked for, but for paths with that end. */
    without,
    async bytes(end) {
      await Promise.all(pending);
      return without(end).reduce((n, r) => n + r.bytes, 0);
    },
    reset() { seen.length = 0; },
  };
}
