/** What the page loads after a view changes nothing of what the view shows. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { holdBack, openTab, SKIP, stopClock } from "../support/browser.ts";
import { until } from "../support/until.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PARTS = [
  { text: "May I?" },
  { text: "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two", mediaType: "text/x-diff" },
  { data: { host: "db1", ports: [1, 2], note: "a longer text" } },
  { raw: PNG, mediaType: "image/png", filename: "map.png" },
];

/** A question with parts of all kinds, work that failed, and a conversation. Returns the id of the question's delegation. */
async function fill(url: string): Promise<string> {
  const api = client(url);
  await api.agent("scout", { description: "Finds things." });
  await api.delegate("scout", { task: "Fail" });
  const [{ lease_id: first }] = (await api.lease("scout")).body.leases;
  await api.reply(first, { state: "failed", error: { code: "no_map", message: "There is no map." } });
  const { id } = (await api.delegate("scout", { task: undefined, message: { parts: PARTS } })).body;
  const [{ lease_id: second }] = (await api.lease("scout")).body.leases;
  const action = { name: "deploy", arguments: { host: "db1", args: ["-v", "-f"] } };
  const asked = { request_id: "a", message: { parts: PARTS }, action, edit: true };
  const choice = { request_id: "b", text: "Which?", options: [{ id: "x" }, { id: "y" }] };
  const { status } = await api.interrupt(second, { requests: [asked, choice] });
  expect(status).toBe(200);
  await api.delegate("scout", { task: "Wait" });
  return String(id);
}

/** Notes where everything is that is shown. */
const note = (page: Page) =>
  page.evaluate(() => {
    const elements = [...document.querySelectorAll("main *, aside *, header *")];
    Reflect.set(
      window,
      "noted",
      elements.map((one) => [one, JSON.stringify(one.getBoundingClientRect())]),
    );
    return elements.length;
  });

/** What has moved since, or has another size. */
const moved = (page: Page) =>
  page.evaluate(() => {
    const noted: [Element, string][] = Reflect.get(window, "noted");
    return noted.flatMap(([one, before]) => {
      const now = JSON.stringify(one.getBoundingClientRect());
      return one.isConnected && now !== before ? [`${one.tagName}.${one.className}: ${before} ${now}`] : [];
    });
  });

/** Of each view: its address, the parts that it is, and what is there once it is shown. */
const VIEWS: readonly (readonly [string, readonly string[], string])[] = [
  ["#/needs", ["later"], "main button[name=approve]"],
  ["#/find", ["later", "find"], ".found"],
  ["#/agents", ["later", "agents"], "main .agent-row"],
  ["#/charts", ["later", "charts"], "main .charts"],
  ["#/answered", ["later", "answered"], "main h1"],
  ["#/live", ["later", "parts"], "main .agent-row"],
  ["#/live?open=ID", ["later", "parts", "view"], ".delegation .tabs"],
];

describe.skipIf(SKIP)("in Chromium", () => {
  test.each(VIEWS)("what comes after %s moves nothing in it", async (hash, own, shown) => {
    const { url } = await startBroker();
    const id = await fill(url);
    const { page } = await openTab(url, { movesClock: true });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".agent-row").first().waitFor();
    const others = await holdBack(
      page,
      new RegExp(
        `/console/(?!(?:chunk|console|leader|not-the-broker|answer-fields|${own.join("|")})-)[a-z-]+-\\w{8}\\.js`,
      ),
    );
    await page.goto("about:blank");
    await page.goto(`${url}/${hash.replace("ID", id)}`);
    await page.locator(shown).first().waitFor();
    // The question beside the view is drawn by a part of its own.
    await page.locator(".request").first().waitFor({ state: "attached" });
    await until(async () => (await page.locator(".question .loading").count()) === 0);
    await stopClock(page);
    // Until all that it has is drawn.
    let before = -1;
    await until(async () => {
      const isStill = before > 0 && (await moved(page)).length === 0;
      const count = await note(page);
      const isSame = isStill && count === before;
      before = count;
      return isSame;
    });
    expect(before).toBeGreaterThan(10);
    // The last part that the page loads in advance.
    const isWhole = page.waitForEvent("requestfinished", (one) => /files-tab-/.test(one.url()));
    others.release();
    await isWhole;
    await page.waitForFunction(() => document.adoptedStyleSheets.length > 8);
    expect(await moved(page)).toEqual([]);
  });
});
