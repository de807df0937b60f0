// SPDX-License-Identifier: MIT
// Empty time folded away: only what is empty, the rest where it was, in the link, by key, button and click.
import assert from "node:assert/strict";
import { inBothThemes, open, place, settle } from "./harness.mjs";
import { columns, FAR, truth } from "./gaps.mjs";

/** The folds of the link, relative to `begin`. */
async function seams(page, begin) {
  const text = (await place(page)).query.get("seams") ?? "";
  return text === "" ? [] : text.split(",").map((f) => f.split("-").map((at) => Number(BigInt(at) - begin)));
}

/** Where a time is, as the page says it is: linear between the seams. */
function pixelOf(at, [from, to], folds, width) {
  const flat = (t) => t - folds.reduce((n, [a, b]) => n + Math.max(0, Math.min(t, b) - a), 0);
  return ((flat(at) - flat(from)) / (flat(to) - flat(from))) * width;
}

export async function foldChecks(suite, { server, trace, far }) {
  const base = server.replace(/\/$/, "");
  for (const [id, begin, what] of [[trace, 0n, ""], [far, FAR, ", beyond 2^63"]]) {
    const see = async (page, from, to, more = "") => {
      await open(page, base, `#/trace/${id}?axis=time&from=${BigInt(from) + begin}&to=${BigInt(to) + begin}&panel=none${more}`);
      return page.evaluate(() => document.querySelector(".plot").clientWidth);
    };
    const allTrue = async (page, width, folds, view) => {
      const places = [1100, 1900, 2300, 4500, 5100, 5900, 6020, 8980, 9100, 9900]
        .filter((t) => t > view[0] && t < view[1] && !folds.some(([a, b]) => t > a - 15 && t < b + 15));
      assert.ok(places.length > 0);
      const seen = await columns(page, places.map((t) => pixelOf(t, view, folds, width)));
      places.forEach((t, i) => assert.equal(seen[i], truth(t), `at ${t}`));
    };

    await suite.check(`folds: what is not traced is folded, what was lost is not, and the rest is where it was${what}`, {}, async (page) => {
      const width = await see(page, 1000, 10000);
      await page.keyboard.press("x");
      const folds = await seams(page, begin);
      assert.equal(folds.length, 1, JSON.stringify(folds));
      const [[a, b]] = folds;
      assert.ok(a > 6000 && a < 6200 && b < 9000 && b > 8800, `${a} ${b}`);
      const view = [1000, 10000];
      await inBothThemes(page, `folds-${begin === 0n ? "near" : "far"}`, async () => { await allTrue(page, width, folds, view); });
      assert.match(await page.textContent("#status"), /in view, .* folded away/);

      // Another time it changes nothing; the link shows the same.
      await page.keyboard.press("x");
      assert.deepEqual(await seams(page, begin), folds);
      const link = await page.evaluate(() => location.href);
      await page.goto(`${base}/#/`);
      await page.goto(link);
      await page.waitForSelector("#timeline");
      assert.deepEqual(await seams(page, begin), folds);
      await allTrue(page, width, folds, view);

      // The pointer is told of the place that is drawn there, and the seam of what it stands for.
      const plot = await page.locator("#timeline").boundingBox();
      const seam = plot.x + pixelOf(a, view, folds, width);
      await page.mouse.move(seam, plot.y + 60);
      await page.waitForFunction(() => /in which nothing ran.*folded away/.test(document.querySelector(".tip")?.textContent ?? ""));
      await page.mouse.click(seam, plot.y + 60);
      assert.deepEqual(await seams(page, begin), []);
      await page.goBack();
      await settle(page);
      assert.deepEqual(await seams(page, begin), folds, "Back undoes it");
      await page.keyboard.press("Shift+X");
      assert.deepEqual(await seams(page, begin), []);
    });

    await suite.check(`folds: zooming and panning keep them, at a place beside one${what}`, {}, async (page) => {
      const width = await see(page, 1000, 10000, `&seams=${6100n + begin}-${8900n + begin}`);
      const plot = await page.locator("#timeline").boundingBox();
      const at = 9500;
      const x = pixelOf(at, [1000, 10000], [[6100, 8900]], width);
      await page.mouse.move(plot.x + x, plot.y + 60);
      for (let i = 0; i < 4; i++) {
        await page.keyboard.down("Control");
        await page.mouse.wheel(0, -60);
        await page.keyboard.up("Control");
        const { query } = await place(page);
        const view = [query.get("from"), query.get("to")].map((t) => Number(BigInt(t.split(".")[0]) - begin));
        assert.ok(Math.abs(pixelOf(at, view, [[6100, 8900]], width) - x) < 4, `${view}`);
        assert.deepEqual(await seams(page, begin), [[6100, 8900]]);
        await allTrue(page, width, [[6100, 8900]], view);
      }
      await page.click("text=Unfold");
      assert.deepEqual(await seams(page, begin), []);
      assert.ok(await page.isVisible(".zooms >> text=Fold"));
    });
  }
}
