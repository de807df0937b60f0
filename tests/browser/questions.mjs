// SPDX-License-Identifier: MIT
// Six questions that the page answers with at most three gestures each: clicks, drags, keys, and a text with its Enter.
// Where something is may be looked for with the pointer, which is no gesture; answers are the server's. Times are told.
import assert from "node:assert/strict";
import { open, settle } from "./harness.mjs";

const MOST = 3;
const digits = (text) => Number(text.replace(/[^0-9]/g, ""));

async function json(page, base, path, init) {
  const reply = await page.request.fetch(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true, ...init });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

/** Counts what a person does. */
class Hand {
  constructor(page) {
    this.page = page;
    this.done = [];
  }

  async click(what, at) {
    this.done.push(`click ${what}`);
    if (at) await this.page.mouse.click(...at);
    else await this.page.locator(what).click();
  }

  async drag(what, [x, y], [to]) {
    this.done.push(`drag ${what}`);
    await this.page.mouse.move(x, y);
    await this.page.mouse.down();
    await this.page.mouse.move(to, y, { steps: 3 });
    await this.page.mouse.up();
  }

  async key(key) {
    this.done.push(`key ${key}`);
    await this.page.keyboard.press(key);
  }

  async type(text) {
    this.done.push(`type ${text}`);
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }
}

/** Where in the lane's call stack a function is at a time, as a person finds it: by what the page says is there. */
async function slice(page, name, share) {
  const plot = await page.locator("#timeline").boundingBox();
  const x = plot.x + plot.width * share;
  for (let y = plot.y + 60; y < plot.y + plot.height - 4; y += 5) {
    await page.mouse.move(x, y);
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const tip = await page.evaluate(() => document.querySelector(".tip")?.textContent ?? "");
    if (tip.startsWith(name) && !/\bEL\d/.test(tip)) return [x, y]; // a call, with its duration
  }
  throw new Error(`${name} is not drawn at ${share}`);
}

export async function questionChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");
  const lane = "cs.10";
  const path = `traces/${trace}/streams/${lane}`;
  const sql = (page, q) => json(page, base, `traces/${trace}/sql`, { method: "POST", data: q });
  const view = (page, from, to, more = "") => open(page, base, `#/trace/${trace}?axis=time&lane=${lane}&open=${lane}&full=${lane}&from=${Math.round(from)}&to=${Math.round(to)}${more}`);
  const told = async (page, hand, begun, what) => {
    console.log(`      ${what}: ${hand.done.length} gestures (${hand.done.join(", ")}), ${Math.round(performance.now() - begun)} ms`);
    assert.ok(hand.done.length <= MOST, hand.done.join(", "));
  };
  const ask = (what, body) => suite.check(`questions: ${what}`, { fresh: true }, async (page) => {
    const hand = new Hand(page);
    await body(page, hand, async (answered) => {
      const begun = performance.now();
      await answered();
      await told(page, hand, begun, what);
    });
  });

  /** A call of code that an exception interrupted for a part of it that is wide enough to be hit. */
  const interrupted = async (page) => {
    const { rows } = await sql(page, `SELECT position, time, duration, function, number FROM call WHERE stream = '${lane}' AND kind = 'exception' AND ended = 1 AND depth > 1 AND duration > 50 LIMIT 400`);
    for (const [position, time, duration, name, number] of rows) {
      const by = await json(page, base, `${path}/call?at=${position - 2}`); // before the vector, too
      const all = by.time_to - by.time_from;
      if (by.kind === "call" && by.ended && by.name && all > 1.5 * duration && time - by.time_from > all / 8) return { position, name, number, by };
    }
    throw new Error("no call was interrupted");
  };

  await ask("the hottest function by time between two times", async (page, hand, until) => {
    const { streams: [{ time_first: first }] } = await json(page, base, `traces/${trace}`);
    await view(page, first, first + 1e6);
    const plot = await page.locator("#timeline").boundingBox();
    await until(async () => {
      await hand.drag("on the ruler", [plot.x + plot.width * 0.3, plot.y + 10], [plot.x + plot.width * 0.6]);
      await page.waitForFunction(() => /own time/.test(document.querySelector("table.hot caption")?.textContent ?? ""));
    });
    await settle(page);
    const [from, to] = new URLSearchParams((await page.evaluate(() => location.hash)).split("?")[1]).get("select").split("-");
    const { functions: [hottest] } = await json(page, base, `${path}/functions?unit=time&from=${from}&to=${to}&limit=1`);
    assert.ok((await page.textContent("table.hot tbody th")).includes(hottest.name));
  });

  await ask("the previous call", async (page, hand, until) => {
    const { hits } = await json(page, base, `${path}/find?call=checksum&limit=3`);
    const c = await json(page, base, `${path}/call?at=${hits[1].insn}`);
    await view(page, c.time_from - 2000, c.time_to + 2000);
    const share = (2000 + (c.time_to - c.time_from) / 2) / (4000 + c.time_to - c.time_from);
    const place = await slice(page, "checksum", share);
    const arrived = (time) => page.waitForFunction((at) => Math.abs(Number(new URLSearchParams(location.hash.split("?")[1]).get("at")) - at) <= 1, time)
      .catch(async (e) => { throw new Error(`${time} ${await page.evaluate(() => location.hash)} ${e.message}`); });
    await until(async () => {
      await hand.click("the call", place);
      await page.waitForFunction(() => document.querySelector(".insn.here")?.textContent.length > 0);
      // Within a call the first key goes to its begin.
      await hand.key("Shift+C");
      await arrived(hits[1].time);
      await hand.key("Shift+C");
      await arrived(hits[0].time);
    });
  });

  await ask("who interrupted here, and for how long", async (page, hand, until) => {
    const { by, name, number, position } = await interrupted(page);
    const air = (by.time_to - by.time_from) / 4;
    await view(page, by.time_from - air, by.time_to + air);
    const place = await slice(page, by.name, 0.19);
    const { rows: truth } = await sql(page, `SELECT function, number, sum(duration) FROM call WHERE stream = '${lane}' AND position >= ${by.from} AND last_position < ${by.to} AND kind = 'exception' GROUP BY 1, 2`);
    await until(async () => {
      await hand.click("the call", place);
      await hand.click("#tab-calls");
      await hand.click(".calls button:text-is('Inside')");
      await page.waitForFunction((n) => [...document.querySelectorAll("table.ints")].some((t) => /Interrupted by/.test(t.caption.textContent) && t.tBodies[0].rows.length > 0 && t.textContent.includes(n)), name);
    });
    const rows = await page.locator("table.ints", { hasText: "Interrupted by" }).locator("tbody tr").allTextContents();
    assert.equal(rows.length, truth.length, `${position}`);
    assert.ok(rows.some((r) => r.includes(name) && r.includes(String(number))), rows.join(" | "));
  });

  await ask("how much of an interrupt's time is in a function that it calls", async (page, hand, until) => {
    const { rows } = await sql(page, `SELECT position, time, duration, function, depth FROM call WHERE stream = '${lane}' AND kind = 'exception' AND ended = 1 AND duration > 0 LIMIT 200`);
    let isr, truth;
    for (const [position, time, duration, name, depth] of rows) {
      const c = await json(page, base, `${path}/call?at=${position}`);
      const { rows: called } = await sql(page, `SELECT function, sum(duration) FROM call WHERE stream = '${lane}' AND position > ${c.from} AND last_position < ${c.to} AND depth = ${depth + 1} AND kind = 'call' GROUP BY 1 ORDER BY 2 DESC`);
      if (called.length > 0 && called[0][1] > 0) {
        [isr, truth] = [{ time, duration: c.time_to - c.time_from, name }, called];
        break;
      }
    }
    assert.ok(isr, "some interrupt calls something");
    await view(page, isr.time - isr.duration / 2, isr.time + 1.5 * isr.duration);
    const place = await slice(page, `exception 2 ${isr.name}`, 0.3);
    await until(async () => {
      await hand.click("the interrupt", place);
      await hand.click("#tab-calls");
      await hand.click(".calls button:text-is('Inside')");
      await page.waitForFunction((n) => [...document.querySelectorAll("table.ints")].some((t) => /It called/.test(t.caption.textContent) && t.textContent.includes(n)), truth[0][0]);
    });
    const row = page.locator("table.ints", { hasText: "It called" }).locator("tbody tr").first();
    const share = parseFloat(await row.locator("td").nth(2).textContent());
    assert.ok(Math.abs(share - (100 * truth[0][1]) / isr.duration) < 1, `${share} of ${JSON.stringify(truth[0])} ${isr.duration}`);
  });

  await ask("what the other core did while this one was in a function", async (page, hand, until) => {
    const { hits } = await json(page, base, `${path}/find?call=checksum&limit=2`);
    const c = await json(page, base, `${path}/call?at=${hits[1].insn}`);
    await view(page, c.time_from - 2000, c.time_to + 2000);
    const place = await slice(page, "checksum", (2000 + (c.time_to - c.time_from) / 2) / (4000 + c.time_to - c.time_from));
    await until(async () => {
      await hand.click("the call", place);
      await hand.click("#tab-calls");
      await hand.click(".calls button:text-is('Inside')");
      await page.waitForFunction(() => document.querySelector("table.meanwhile tbody tr")?.textContent.includes("cs.12"));
    });
    const there = await json(page, base, `traces/${trace}/streams/cs.12/functions?unit=time&from=${c.time_from}&to=${c.time_to}&limit=1`);
    const row = await page.textContent("table.meanwhile tbody tr");
    assert.ok(row.includes(there.functions.length > 0 ? there.functions[0].name : "nothing ran"), row);
  });

  await ask("where two runs part", async (page, hand, until) => {
    const truth = await json(page, base, `${path}/compare?with=${encodeURIComponent(`${trace}/cs.12`)}&hunks=1`);
    await open(page, base, `#/trace/${trace}?axis=time&lane=${lane}`);
    await until(async () => {
      await hand.click("#tab-compare");
      await hand.click(".compare input[type=text]");
      await hand.type("cs.12");
      await page.waitForFunction(() => document.querySelector(".compare .parting button, .compare table.figures tbody tr"));
    });
    // What is told ahead, unless all is there already, is what the whole says.
    const ahead = page.locator(".compare .parting button, .compare table.figures tbody button").first();
    assert.equal(digits(await ahead.textContent()), truth.hunks[0].a_from);
    await page.waitForSelector(".compare dl.details");
    const first = await page.locator(".compare table.figures tbody tr").first().locator("th, td").first().textContent();
    assert.equal(digits(first), truth.hunks[0].a_from);
  });
}
