// SPDX-License-Identifier: MIT
// A server that requires a token: the page redirects to the login, and back to what was requested.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Lab } from "./lab.mjs";
import { accessible, shot } from "./harness.mjs";

const TOKEN = "sesame-0123456789abcdef";

export async function loginChecks(suite) {
  const lab = new Lab();
  try {
    const tokens = path.join(lab.dir, "tokens");
    fs.writeFileSync(tokens, `${TOKEN} admin\n`, { mode: 0o600 });
    await lab.start("--tokens", tokens);
    await suite.check("login: a token once, then a cookie, until it is ended", { fresh: true }, async (page, troubles) => {
      // Before the login the browser logs each 401.
      const expected = (t) => /status of 401/.test(t);
      const forget = () => { for (let i = troubles.length - 1; i >= 0; i--) if (expected(troubles[i])) troubles.splice(i, 1); };
      await page.goto(`${lab.url}/#/?q=x`);
      await page.waitForURL(/\/login\?next=/);
      await page.getByLabel("Access token").fill("thistle-0123456789abcdef");
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByText("the token is not known").waitFor();
      await accessible(page);
      await shot(page, "login");
      await page.getByLabel("Access token").fill(TOKEN);
      await page.keyboard.press("Enter");
      await page.waitForURL(`${lab.url}/#/**`);
      await page.locator("header .brand").waitFor();
      forget();
      const [cookie] = await page.context().cookies();
      assert.equal(cookie.httpOnly, true);
      assert.equal(cookie.sameSite, "Lax");
      assert.equal(await page.evaluate(() => document.cookie), "");
      // A second visit needs no token; the login page redirects by itself.
      await page.goto(`${lab.url}/login?next=https://example.com/`);
      await page.locator("header .brand").waitFor();
      assert.equal(new URL(page.url()).origin, lab.url);
      await page.keyboard.press("?");
      await page.getByRole("button", { name: "Log out" }).click();
      await page.waitForURL(/\/login$/);
      await page.getByLabel("Access token").waitFor();
      const status = await page.evaluate(() => fetch("api/v1/traces").then((r) => r.status));
      assert.equal(status, 401);
      forget();
    });
  } finally {
    await lab.close();
  }
}
