// SPDX-License-Identifier: MIT
// Firefox, driven by WebDriver BiDi: commands and events as JSON on a WebSocket, by which it is asked directly. Enough of
// it for the page: opening, evaluating, pointer, keys, fingers, what is logged, screenshots.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { build } from "./harness.mjs";

const { ws: WebSocket } = createRequire(path.join(build, "web/package.json"))("playwright-core/lib/utilsBundle");
const START_MS = 120000;
const WAIT_MS = 120000;

/** Keys that have no character of their own, by the numbers of WebDriver. */
const KEYS = { Enter: "\uE007", Escape: "\uE00C", Tab: "\uE004", Shift: "\uE008", Control: "\uE009", ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015" };

/** The executable; undefined: there is none. */
export function firefox() {
  const names = ["firefox-esr", "firefox"].flatMap((name) => (process.env.PATH ?? "").split(":").map((dir) => path.join(dir, name)));
  return process.env.TL_FIREFOX ?? names.find((file) => fs.existsSync(file));
}

/** A window of a Firefox of its own, with nothing stored. */
export class Firefox {
  static async start(program, width, height, dark = false) {
    const it = new Firefox();
    it.profile = fs.mkdtempSync(path.join(os.tmpdir(), "tracelake-firefox-"));
    fs.writeFileSync(path.join(it.profile, "user.js"), [
      ["ui.systemUsesDarkTheme", dark ? 1 : 0], ["layout.css.prefers-color-scheme.content-override", dark ? 0 : 1],
      ["dom.w3c_touch_events.enabled", 1], ["app.update.enabled", false], ["datareporting.policy.dataSubmissionEnabled", false],
    ].map(([key, value]) => `user_pref("${key}", ${JSON.stringify(value)});\n`).join(""));
    it.child = spawn(program, ["--headless", "--no-remote", "--profile", it.profile, "--remote-debugging-port", "0"],
      { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: it.profile, MOZ_DISABLE_CONTENT_SANDBOX: "1" } });
    it.ended = new Promise((done) => { it.child.on("exit", done); });
    const address = await new Promise((done, fail) => {
      let said = "";
      const timer = setTimeout(() => fail(new Error(`Firefox does not listen: ${said.slice(-2000)}`)), START_MS);
      it.child.stderr.on("data", (bytes) => {
        said += bytes;
        const [, url] = /WebDriver BiDi listening on (ws:\S+)/.exec(said) ?? [];
        if (url) {
          clearTimeout(timer);
          done(url);
        }
      });
      void it.ended.then(() => fail(new Error(`Firefox ended: ${said.slice(-2000)}`)));
    });
    await it.connect(`${address}/session`);
    await it.send("session.new", { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
    await it.send("session.subscribe", { events: ["log.entryAdded"] });
    const { contexts: [{ context }] } = await it.send("browsingContext.getTree", {});
    it.context = context;
    await it.resize(width, height);
    return it;
  }

  constructor() {
    this.errors = []; // logged since the last look
    this.waiting = new Map(); // for answers, by number
    this.n = 0;
  }

  connect(url) {
    this.socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 1 << 28 });
    this.socket.on("message", (bytes) => {
      const told = JSON.parse(bytes);
      if (told.method === "log.entryAdded" && told.params.level === "error") this.errors.push(told.params.text);
      const [done, fail] = this.waiting.get(told.id) ?? [];
      this.waiting.delete(told.id);
      if (told.type === "success") done?.(told.result);
      else if (told.type === "error") fail?.(new Error(`${told.error}: ${told.message}`));
    });
    this.socket.on("close", () => {
      for (const [, fail] of this.waiting.values()) fail(new Error("Firefox is gone"));
      this.waiting.clear();
    });
    return new Promise((done, fail) => { this.socket.on("open", done).on("error", fail); });
  }

  send(method, params) {
    if (this.socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error("Firefox is gone"));
    const id = ++this.n;
    return new Promise((done, fail) => {
      this.waiting.set(id, [done, fail]);
      this.socket.send(JSON.stringify({ id, method, params }));
    });
  }

  async resize(width, height) {
    await this.send("browsingContext.setViewport", { context: this.context, viewport: { width, height } });
  }

  async go(url) {
    await this.send("browsingContext.navigate", { context: this.context, url, wait: "complete" });
  }

  /** The value of an expression, which is or becomes JSON. */
  async evaluate(expression) {
    const told = await this.send("script.evaluate", {
      expression: `(async () => JSON.stringify(await (${expression})) ?? "null")()`, target: { context: this.context }, awaitPromise: true,
    });
    if (told.type === "exception") throw new Error(told.exceptionDetails.text);
    return JSON.parse(told.result.value);
  }

  /** Wait until an expression is true. */
  async until(expression) {
    for (const end = Date.now() + WAIT_MS; Date.now() < end;) {
      if (await this.evaluate(expression)) return;
      await this.evaluate("new Promise((done) => { requestAnimationFrame(done); })");
    }
    throw new Error(`not in time: ${expression}`);
  }

  /** Nothing is pending, and what is shown is drawn. */
  async settle() {
    await this.until(`new Promise((done) => { let n = 0; const look = () => {
      if (document.querySelector("#timeline") && !document.querySelector(".busy:not(.on)")) return done(false);
      return ++n === 3 ? done(true) : requestAnimationFrame(look);
    }; look(); })`);
  }

  box(selector) {
    return this.evaluate(`(({ x, y, width, height }) => ({ x, y, width, height }))(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`);
  }

  async act(type, id, actions, parameters) {
    await this.send("input.performActions", { context: this.context, actions: [{ type, id, actions, ...(parameters && { parameters }) }] });
  }

  async move(x, y) {
    await this.act("pointer", "mouse", [{ type: "pointerMove", x: Math.round(x), y: Math.round(y) }]);
  }

  async click(x, y) {
    await this.act("pointer", "mouse", [{ type: "pointerMove", x: Math.round(x), y: Math.round(y) }, { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 }]);
  }

  async press(selector) {
    const { x, y, width, height } = await this.box(selector);
    await this.click(x + width / 2, y + height / 2);
  }

  async wheel(x, y, deltaX, deltaY) {
    await this.act("wheel", "wheel", [{ type: "scroll", x: Math.round(x), y: Math.round(y), deltaX: Math.round(deltaX), deltaY: Math.round(deltaY) }]);
  }

  /** Keys one after the other; "Shift+x" holds the first one. */
  async keys(...names) {
    for (const name of names) {
      const all = name.length > 1 && name.includes("+") ? name.split("+") : [name];
      const values = all.map((key) => KEYS[key] ?? key);
      await this.act("key", "keys", [...values.map((value) => ({ type: "keyDown", value })), ...values.reverse().map((value) => ({ type: "keyUp", value }))]);
    }
  }

  async type(text) {
    await this.keys(...text);
  }

  /** Fingers that move at once: each [from x, from y, to x, to y]. */
  async touch(...fingers) {
    await this.send("input.performActions", {
      context: this.context,
      actions: fingers.map(([x0, y0, x1, y1], i) => ({
        type: "pointer", id: `finger-${i}`, parameters: { pointerType: "touch" },
        actions: [{ type: "pointerMove", x: Math.round(x0), y: Math.round(y0) }, { type: "pointerDown", button: 0 },
          ...[1, 2, 3, 4].map((k) => ({ type: "pointerMove", duration: 30, x: Math.round(x0 + ((x1 - x0) * k) / 4), y: Math.round(y0 + ((y1 - y0) * k) / 4) })), { type: "pointerUp", button: 0 }],
      })),
    });
  }

  async screenshot(file) {
    const { data } = await this.send("browsingContext.captureScreenshot", { context: this.context });
    fs.writeFileSync(file, Buffer.from(data, "base64"));
  }

  async close() {
    this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), 10000);
    await this.ended;
    clearTimeout(timer);
    fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
