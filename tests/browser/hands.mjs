// SPDX-License-Identifier: MIT
// The keyboard alone, and fingers alone: every control of every panel is reached by Tab, has a name and shows the focus;
// a way from the list to an answer without a pointer; taps, drags and pinches as on a touch screen.
import assert from "node:assert/strict";
import { accessible, frame, open, place, settle } from "./harness.mjs";

/** Controls that Tab must reach, as they are in the page, each with its name and whether it shows the focus. */
const CONTROLS = "button, a[href], input, select, textarea, summary, [tabindex]";

/** Press Tab from the top of the page to its end, and say of each control on the way what it is. */
async function walk(page) {
  const most = await page.evaluate((selector) => {
    document.activeElement?.blur();
    window.getSelection().removeAllRanges();
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    const wanted = new Set([...document.querySelectorAll(selector)].filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 0));
    const most = wanted.size;
    const unmarked = [];
    const note = ({ target: e }) => {
      wanted.delete(e);
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(e);
      if ((outlineStyle === "none" || parseFloat(outlineWidth) === 0) && boxShadow === "none") unmarked.push(e.outerHTML.slice(0, 120));
    };
    document.addEventListener("focusin", note);
    window.walked = () => {
      document.removeEventListener("focusin", note);
      return { missed: [...wanted].filter((e) => e.isConnected).map((e) => e.outerHTML.slice(0, 160)), unmarked };
    };
    return most;
  }, CONTROLS);
  assert.ok(most > 8, `${most} controls`);
  for (let i = 0; i < most + 8; i++) {
    await page.keyboard.press("Tab");
    // Behind the last one is the body.
    if (i >= most - 8 && await page.evaluate(() => document.activeElement === document.body)) break;
  }
  return page.evaluate(() => window.walked());
}

export async function handChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");

  await suite.check("keyboard: every control of every panel is reached, and shows that it is", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?axis=time&lane=cs.10&at=20000&from=0&to=100000&select=10000-60000&panel=overview`);
    const tabs = await page.locator("[role=tab]").evaluateAll((all) => all.map((t) => t.id));
    assert.ok(tabs.length >= 13);
    await page.locator(`#${tabs[0]}`).focus();
    for (const tab of tabs) {
      await page.waitForFunction((id) => document.getElementById(id).getAttribute("aria-selected") === "true", tab);
      await page.waitForFunction(() => !/Loading…|Counting…/.test(document.querySelector("#tabpanel").textContent));
      await settle(page);
      const { missed, unmarked } = await walk(page);
      assert.deepEqual([missed, unmarked], [[], []], tab);
      await accessible(page);
      // The next panel, by the arrow.
      await page.locator(`#${tab}`).focus();
      await page.keyboard.press("ArrowDown");
    }
  });

  await suite.check("keyboard: from the list to who interrupted a call, and back", {}, async (page) => {
    await page.goto(`${base}/#/`);
    await page.waitForSelector(`#trace-${trace}`);
    assert.deepEqual(await walk(page), { missed: [], unmarked: [] });
    const tabTo = async (selector) => {
      for (let i = 0; i < 150; i++) {
        if (await page.evaluate((s) => document.activeElement?.matches(s) ?? false, selector)) return;
        await page.keyboard.press("Tab");
      }
      throw new Error(`${selector} is not reached`);
    };
    await tabTo(`#trace-${trace}`);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#timeline");
    await settle(page);
    assert.equal(await page.evaluate(() => document.activeElement.id), "timeline");
    // A function by its name, then its call, then what interrupted it.
    await page.keyboard.press("/");
    await page.keyboard.type("event:exception");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.includes("at="));
    await settle(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await tabTo("[role=tab]");
    for (let i = 0; i < 13 && await page.evaluate(() => document.activeElement.id) !== "tab-calls"; i++) await page.keyboard.press("ArrowUp");
    await page.waitForSelector(".calls dl.details");
    await tabTo(".calls button");
    for (let i = 0; i < 12 && await page.evaluate(() => document.activeElement.textContent) !== "Inside"; i++) await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.waitForFunction(() => /It called|Nothing interrupted it|Interrupted by/.test(document.querySelector(".calls").textContent));
    // The way back: to the timeline, the whole of it, the list.
    await tabTo("#timeline");
    await page.keyboard.press("0");
    await page.waitForFunction(() => !location.hash.includes("from="));
    await page.keyboard.press("Control+k");
    await page.keyboard.type("all traces");
    await page.keyboard.press("Enter");
    await page.waitForSelector("table.traces tbody tr");
  });

  for (const [width, height] of [[1280, 800], [700, 900]]) {
    await suite.check(`touch: a tap, a drag, a pinch, a panel, at ${width} pixels`, { viewport: { width, height }, hasTouch: true, fresh: true }, async (page) => {
      await open(page, base, `#/trace/${trace}?axis=insn&lane=cs.10&from=100000&to=140000`);
      const cdp = await page.context().newCDPSession(page);
      const fingers = async (type, ...points) => {
        await cdp.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
        await frame(page);
      };
      const plot = await page.locator("#timeline").boundingBox();
      const [x, y] = [plot.x + plot.width / 2, plot.y + 60];
      await page.touchscreen.tap(x, y);
      await page.waitForFunction(() => Math.abs(Number(new URLSearchParams(location.hash.split("?")[1]).get("at")) - 120000) < 200);
      const before = await place(page);
      await fingers("touchStart", [x, y]);
      for (const by of [20, 60, 100]) await fingers("touchMove", [x + by, y]);
      await fingers("touchEnd");
      const dragged = await place(page);
      assert.ok(Math.abs(before.from - dragged.from - (100 / plot.width) * 40000) < 600, `${before.from} ${dragged.from}`);
      await fingers("touchStart", [x - 30, y], [x + 30, y]);
      for (const apart of [45, 80, 120]) await fingers("touchMove", [x - apart, y], [x + apart, y]);
      await fingers("touchEnd");
      const pinched = await place(page);
      assert.ok(Math.abs((pinched.to - pinched.from) / (dragged.to - dragged.from) - 0.25) < 0.04, `${pinched.to - pinched.from}`);
      const scale = await page.evaluate(() => window.visualViewport.scale);
      assert.equal(scale, 1, "the page itself is not zoomed");
      const tab = await page.locator("#tab-calls").boundingBox();
      assert.ok(tab.width >= 24 && tab.height >= 24, JSON.stringify(tab));
      await page.touchscreen.tap(tab.x + tab.width / 2, tab.y + tab.height / 2);
      await page.waitForSelector(".calls dl.details");
      // Nothing that is tapped is cut off by what it lies in.
      const cut = await page.locator(".viewbar button, .corner button, header button").evaluateAll((all) => all.filter((b) => b.checkVisibility()).flatMap((b) => {
        const own = b.getBoundingClientRect();
        const around = b.closest(".viewbar, .corner, header").getBoundingClientRect();
        return own.left < around.left - 1 || own.right > around.right + 1 ? [b.textContent.trim() || b.ariaLabel] : [];
      }));
      assert.deepEqual(cut, []);
      await accessible(page);
    });
  }
}
