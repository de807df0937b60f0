// SPDX-License-Identifier: MIT
// What all cores run at a time, and another trace beside them, against what the server says.
import assert from "node:assert/strict";
import { accessible, open, place, settle, shot } from "./harness.mjs";

async function json(page, base, path) {
  const reply = await page.request.get(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

export async function togetherChecks(suite, { server, trace, other }) {
  const base = server.replace(/\/$/, "");
  for (const scheme of ["light", "dark"]) {
    await suite.check(`together: what every core runs at the cursor's time, how certain, and another trace (${scheme})`, { colorScheme: scheme }, async (page) => {
      const t = await json(page, base, `traces/${trace}`);
      const names = t.streams.map((s) => s.name);
      const time = Math.floor((t.streams[0].time_first + t.streams[0].time_last) / 2);
      const truth = (await json(page, base, `traces/${trace}/at?streams=${names.join(",")}&time=${time}`)).streams;
      for (const name of names) {
        const m = truth[name];
        assert.ok(m.time_from <= m.time && m.time <= m.time_to && m.time <= time, JSON.stringify(m));
        const [row] = await json(page, base, `traces/${trace}/streams/${name}/insns?from=${m.insn}&count=1`);
        assert.equal(row.pc, m.row.pc);
      }
      await open(page, base, `#/trace/${trace}?axis=time&at=${time}&panel=together`);
      const rows = () => page.locator(".together tbody tr").allTextContents();
      await page.waitForFunction(() => document.querySelector(".together tbody") && !document.querySelector(".together tbody").textContent.includes("…"));
      const shown = await rows();
      assert.equal(shown.length, names.length);
      names.forEach((name, i) => {
        assert.ok(shown[i].includes(name) && shown[i].includes(truth[name].row.function), `${shown[i]} ${truth[name].row.function}`);
        assert.match(shown[i], /−.*\+/);
      });
      await page.locator(".together select").selectOption(other);
      await page.waitForFunction((n) => document.querySelectorAll(".together tbody tr").length > n, names.length);
      await page.waitForFunction(() => ![...document.querySelectorAll(".together tbody")].some((b) => b.textContent.includes("…")));
      assert.match(await page.textContent(".together"), /not known to be related/);
      assert.equal((await place(page)).query.get("beside"), other);
      await settle(page);
      await accessible(page);
      await shot(page, `together-${scheme}`);
      // The other lane is a key press away, at its instruction.
      await page.locator(".together tbody button").nth(1).focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction((name) => location.hash.includes(`lane=${name}`), names[1]);
      await page.locator(".together input").fill("1000");
      await page.keyboard.press("Tab");
      await page.waitForFunction(() => /as you said/.test(document.querySelector(".together").textContent));
      assert.equal((await place(page)).query.get("offset"), "1000");
    });
  }
}
