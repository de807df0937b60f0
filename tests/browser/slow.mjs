// SPDX-License-Identifier: MIT
// The page while the server is slow, gone, or back: what is drawn in the meantime is not mistaken
// for data, and everything arrives in the end.
import assert from "node:assert/strict";
import { cssColour, open, settle, WAIT_MS, wheel } from "./harness.mjs";

const SOAK = "#/trace/soak-2026-01-02";
const SLOW_MS = 700;

/** The share of the first lane's outermost call stack row that has a function's colour. */
async function coloured(page) {
  const grey = await Promise.all(["ground", "depth", "depth2", "line", "stripe", "muted"].map((n) => cssColour(page, n)));
  return page.evaluate((none) => {
    const canvas = document.querySelector("canvas.base");
    const { data } = canvas.getContext("2d").getImageData(0, 124, canvas.width, 1);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) {
      const c = `#${((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]).toString(16).padStart(6, "0")}`;
      if (!none.includes(c)) n++;
    }
    return n / canvas.width;
  }, grey);
}

async function until(what, holds) {
  for (const end = Date.now() + WAIT_MS; Date.now() < end;) {
    if (await holds()) return;
    await new Promise((r) => { setTimeout(r, 60); });
  }
  assert.fail(`not in time: ${what}`);
}

export async function slowChecks(suite, mock) {
  const { url } = mock;

  await suite.check("slow: call stacks come though the page is drawn again and again", {}, async (page) => {
    await page.route("**/slices?*", async (route) => {
      await new Promise((r) => { setTimeout(r, SLOW_MS); });
      await route.continue().catch(() => {});
    });
    // The live trace is redrawn several times while waiting for an answer.
    await open(page, url, "#/trace/rig-a-live?from=2520606&to=2520806");
    await until("call stacks", async () => await coloured(page) > 0.5);
  });

  await suite.check("slow: no zoom by the wheel ends without call stacks", {}, async (page) => {
    await open(page, url, `${SOAK}?from=0&to=40000000&panel=none`);
    for (let round = 0; round < 3; round++) {
      await wheel(page, [340 + 260 * round, 145], 20, { deltaY: -140, ctrlKey: true });
      await settle(page);
      await until(`call stacks of round ${round}`, async () => await coloured(page) > 0.5);
      await page.evaluate((hash) => { location.hash = hash; }, `${SOAK}?from=0&to=40000000&panel=none`);
      await settle(page);
    }
  });
}
