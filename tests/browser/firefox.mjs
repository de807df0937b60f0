// SPDX-License-Identifier: MIT
// The page in Firefox, over HTTP/2, on a server with simulated captures: what is drawn, found, pressed and opened, and
// what grows while it is looked at. Exit status 77: there is no Firefox.
//
//   node tests/browser/firefox.mjs        TL_BUILD_DIR, TL_FIREFOX, TL_SHOTS=1 as in run.mjs
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { build, root } from "./harness.mjs";
import { Firefox, firefox } from "./bidi.mjs";
import { Lab } from "./lab.mjs";

const program = firefox();
if (!program) {
  console.log("skipped: there is no Firefox");
  process.exit(77);
}

const SHOTS = path.join(build, "screenshots");
fs.mkdirSync(SHOTS, { recursive: true });
const TABS = [...fs.readFileSync(path.join(root, "web/src/panels/side.ts"), "utf8").matchAll(/^ {2}\["(\w+)", "\w+"\],$/gm)].map(([, id]) => id);
const query = (key) => `new URLSearchParams(location.hash.split("?")[1] ?? "").get("${key}")`;

/** Colours of the lanes, below the ruler. */
const drawn = `(() => { const c = document.querySelector("canvas.base"); const { data } = c.getContext("2d").getImageData(0, 24, c.width, c.height - 24);
  return new Set(new Uint32Array(data.buffer)).size; })()`;

let page;
const failed = [];
let passed = 0;

/** A check, which must log no error. */
async function check(name, body) {
  const begun = Date.now();
  try {
    await body();
    assert.deepEqual(page.errors.splice(0), []);
    passed++;
    console.log(`ok    ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed.push(name);
    console.log(`FAIL  ${name}\n      ${String(error.stack ?? error).split("\n").slice(0, 8).join("\n      ")}\n      ${page.errors.splice(0).join("\n      ")}`);
    await page.screenshot(path.join(SHOTS, `failed-firefox-${failed.length}.png`)).catch(() => {});
  }
}

const shot = async (name) => { if (process.env.TL_SHOTS) await page.screenshot(path.join(SHOTS, `firefox-${name}.png`)); };

async function open(url, hash) {
  await page.go(`${url}/${hash}`);
  await page.until(`document.querySelector("#timeline") !== null`);
  await page.settle();
}

async function checks(lab) {
  const trace = await lab.finished();
  const cortex = await lab.cortex();

  await check("the list leads to a trace, over HTTP/2", async () => {
    await page.go(`${lab.tls}/#/`);
    await page.until(`document.querySelector("table.traces tbody tr") !== null`);
    assert.deepEqual(await page.evaluate(`[...new Set(performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).map((e) => e.nextHopProtocol).filter(Boolean))]`), ["h2"]);
    await shot("list");
    await page.press(`#trace-${trace}`);
    await page.until(`document.querySelector("#timeline") !== null`);
    await page.settle();
    assert.ok(await page.evaluate(drawn) > 6, "lanes are drawn");
    await shot("trace");
  });

  await check("a click, keys, the wheel and a drag", async () => {
    await open(lab.tls, `#/trace/${trace}?axis=insn&from=100000&to=140000`);
    const plot = await page.box("#timeline");
    await page.click(plot.x + plot.width / 2, plot.y + 50);
    await page.until(`Math.abs(Number(${query("at")}) - 120000) < 60`);
    await page.until(`document.querySelector(".insn.here")?.textContent.length > 5`);
    await page.keys(".");
    await page.until(`Number(${query("at")}) > 119000 && document.querySelector(".insn.here") !== null`);
    await page.wheel(plot.x + plot.width / 2, plot.y + 50, 100, 0);
    await page.until(`Number(${query("from")}) > 100000`);
    const from = await page.evaluate(`Number(${query("from")})`);
    await page.act("pointer", "mouse", [{ type: "pointerMove", x: Math.round(plot.x + 200), y: Math.round(plot.y + 60) }, { type: "pointerDown", button: 0 },
      { type: "pointerMove", x: Math.round(plot.x + 300), y: Math.round(plot.y + 60), duration: 50 }, { type: "pointerUp", button: 0 }]);
    await page.until(`Number(${query("from")}) < ${from}`);
    await page.keys("0");
    await page.until(`${query("from")} === null`);
  });

  await check("a search finds what the server finds", async () => {
    const { hits: [hit], total } = await fetch(`${lab.url}/api/v1/traces/${trace}/find?q=checksum&limit=1&count=1`).then((r) => r.json());
    await open(lab.tls, `#/trace/${trace}?axis=insn`);
    await page.keys("/");
    await page.until(`document.activeElement?.closest(".search") !== null`);
    await page.type("checksum");
    await page.keys("Enter");
    await page.until(`${query("panel")} === "find" && Number(${query("at")}) === ${hit.insn}`);
    await page.until(`document.querySelector(".search").textContent.replace(/,/g, "").includes("1 of ${total}")`);
    await page.settle();
    await shot("search");
  });

  for (const tab of TABS) {
    await check(`panel ${tab}`, async () => {
      await open(lab.tls, `#/trace/${trace}?axis=time&at=20000&from=0&to=100000`);
      await page.press(`#tab-${tab}`);
      await page.until(`document.querySelector("#tab-${tab}").getAttribute("aria-selected") === "true"`);
      await page.until(`document.querySelector("#tabpanel").textContent.trim().length > 3 && !/Loading…|Counting…/.test(document.querySelector("#tabpanel").textContent)`);
      await page.settle();
      await shot(`panel-${tab}`);
    });
  }

  await check("help, commands and the table of lanes by their keys", async () => {
    await open(lab.tls, `#/trace/${cortex}?axis=time`);
    await page.evaluate(`document.querySelector("#timeline").focus()`);
    await page.keys("?");
    await page.until(`document.querySelector("dialog[open] kbd") !== null`);
    await shot("help");
    await page.keys("Escape");
    await page.until(`document.querySelector("dialog[open]") === null`);
    await page.keys("Control+k");
    await page.until(`document.querySelector("dialog[open] [role=listbox]") !== null`);
    await page.type("lanes");
    await page.keys("Escape");
    await page.until(`document.querySelector("dialog[open]") === null`);
    await page.keys("l");
    await page.until(`document.querySelector("section.lanes table") !== null`);
    await page.keys("l");
    await page.until(`document.querySelector("section.lanes table") === null`);
  });

  await check("fingers: one pans, two zoom", async () => {
    await open(lab.tls, `#/trace/${trace}?axis=insn&from=100000&to=140000&panel=none`);
    const plot = await page.box("#timeline");
    const [x, y] = [plot.x + plot.width / 2, plot.y + 60];
    await page.touch([x, y, x + 150, y]);
    await page.until(`Number(${query("from")}) < 99000`);
    await page.settle();
    await page.touch([x - 40, y, x - 200, y], [x + 40, y + 30, x + 200, y + 30]);
    await page.until(`Number(${query("to")}) - Number(${query("from")}) < 20000`);
  });

  await check("narrow and wide", async () => {
    for (const [width, height] of [[700, 700], [2560, 1300]]) {
      await page.resize(width, height);
      await open(lab.tls, `#/trace/${trace}?axis=time`);
      assert.ok(await page.evaluate(drawn) > 6);
      assert.ok(await page.evaluate(`document.documentElement.scrollWidth <= innerWidth`));
      await shot(`at-${width}`);
    }
    await page.resize(1440, 860);
  });

  await check("a trace that grows is followed", async () => {
    await lab.whileLive(async (live) => {
      await open(lab.tls, `#/trace/${live}?axis=insn&follow=zoom`);
      const insns = `Number(document.querySelector(".head .count")?.textContent.replace(/[^0-9.]/g, "") ?? 0)`;
      await page.until(`${insns} > 0`);
      const text = await page.evaluate(`document.querySelector(".head .count").textContent`);
      await page.until(`document.querySelector(".head .count").textContent !== ${JSON.stringify(text)}`);
      assert.ok(await page.evaluate(drawn) > 4);
      await shot("live");
      await page.go(`${lab.tls}/#/`);
    });
  });
}

const lab = new Lab();
try {
  await lab.start();
  page = await Firefox.start(program, 1440, 860);
  await checks(lab);
} finally {
  await page?.close();
  await lab.close();
}
console.log(`firefox: ${passed} passed, ${failed.length} failed`);
process.exit(failed.length === 0 ? 0 : 1);
