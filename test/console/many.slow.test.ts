/** Many questions, agents and tokens in the console. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, stopClock, tick } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setQuestions } from "./scene.ts";

describe.skipIf(SKIP)("in Chromium", () => {
  test("questions are selected and decided together, with what was edited, and all taken back; the rest waits", async () => {
    const { url } = await startBroker();
    await setQuestions(url, 52);
    const { page } = await openTab(url, { movesClock: true });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    const cards = page.locator(".needs .question");
    await page.locator(".needs h1", { hasText: "52" }).waitFor();
    await page.locator(".needs").getByRole("button", { name: "2 more" }).waitFor();
    expect(await cards.count()).toBe(50);

    // The hints of the keys are in the question that the keys reach: the first one, or the focused one.
    const hints = page.locator("[data-question] kbd:visible");
    await until(async () => (await cards.first().locator("kbd:visible").count()) === 2);
    expect(await hints.count()).toBe(2);
    await cards.nth(1).focus();
    await until(async () => (await cards.nth(1).locator("kbd:visible").count()) === 2);
    expect(await hints.count()).toBe(2);

    const card = (n: number) => page.locator(".needs .question", { hasText: `touch file ${n}?` });
    await card(0).focus();
    await page.keyboard.press("x");
    expect(await card(0).getByRole("checkbox").isChecked()).toBe(true);
    await tick(card(1).getByRole("checkbox"));
    // An option is chosen in its question alone.
    expect(await card(3).getByRole("checkbox").count()).toBe(0);
    const bar = page.getByRole("group", { name: "Several questions" });
    await bar.getByRole("button", { name: "Approve 2" }).waitFor();
    await card(1).getByRole("button", { name: "Edit" }).click();
    await card(1).getByRole("button", { name: "As JSON" }).click();
    const editor = card(1).getByLabel("Arguments of fs.touch");
    await editor.fill("{");
    await stopClock(page);
    await bar.getByRole("button", { name: "Approve 2" }).click();
    // An edit that is not JSON stays, selected.
    await card(0).locator("text=Approved, not sent yet").waitFor();
    await bar.getByRole("button", { name: "Approve 1" }).waitFor();
    await editor.fill('{ "path": "/tmp/1" }');
    await bar.getByRole("button", { name: "Approve 1" }).click();
    await bar.locator("text=2 not sent yet").waitFor();
    await bar.getByRole("button", { name: "Undo all" }).click();
    await bar.waitFor({ state: "detached" });
    await pass(page, 5);
    await page.clock.resume();

    for (const n of [0, 1]) await tick(card(n).getByRole("checkbox"));
    await bar.getByRole("button", { name: "Approve 2" }).click();
    await pass(page, 5);
    const api = client(url);
    const answered = async () =>
      (await api.call("GET", "/v1/delegations?target=asker&state=submitted")).body.delegations;
    await until(async () => (await answered()).length === 2);
    const parts = [];
    for (const { id } of await answered()) parts.push((await api.get(id)).body.history.at(-1).parts);
    expect(parts).toContainEqual([{ data: { path: "/tmp/1" } }]);
    await page.locator(".needs h1", { hasText: "50" }).waitFor();
  });

  test("of many agents and tokens those in view are drawn, in rows of one height, and all are found by name", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const names = Array.from({ length: 210 }, (_, n) => `agent-${String(n).padStart(3, "0")}`);
    await Promise.all(names.map((name) => api.agent(name)));
    await Promise.all(names.map((name) => api.call("POST", "/v1/tokens", { principal: `caller:${name}` })));
    await api.delegate("agent-100");
    // Its row would need another line.
    await api.delegate("agent-001");
    await api.delegate("agent-001", { delay_seconds: 3600 });
    await api.call("POST", "/v1/agents/agent-001/pause");
    const { page } = await openTab(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    const agents = page.locator(".agent-row");
    await page.getByRole("button", { name: "207 idle" }).waitFor();
    // Those with work come first.
    expect(await agents.evaluateAll((all) => all.map((one) => one.getAttribute("data-row")))).toEqual([
      "agent-100",
      "agent-001",
      "agent-000",
    ]);
    await page.getByRole("button", { name: "207 idle" }).click();
    await page.getByRole("link", { name: "180 more" }).waitFor();
    expect(await agents.count()).toBe(30);
    await page.getByRole("link", { name: "180 more" }).click();
    await page.getByRole("heading", { name: "Agents 210" }).waitFor();
    await checkLongList(page, names.length);
    await showView(page, "#/agents?part=tokens");
    await checkLongList(page, names.length);

    await showView(page, "#/agents");
    await page.getByLabel("Find by name").fill("T-101");
    await until(async () => (await agents.allTextContents()).every((row) => row.startsWith("agent-101")));
    await page.getByLabel("Find by name").fill("nobody");
    await page.locator("text=No agent has this in its name").waitFor();
  });
});

/** The list draws a part of its rows, of the same height at each width, and its end when it is scrolled to. */
async function checkLongList(page: Page, count: number): Promise<void> {
  const rows = page.locator("main .rows.long > li");
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await until(async () => (await rows.count()) > 0 && (await rows.count()) < 100);
    const heights = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
    expect(new Set(heights.map(Math.round)).size, `heights at ${width}`).toBe(1);
    // The end is where the heights that were measured put it.
    await until(async () => {
      await page.locator("main").evaluate((column) => column.scrollTo({ top: column.scrollHeight }));
      return (await rows.last().getAttribute("aria-posinset")) === String(count);
    });
    await page.locator("main").evaluate((column) => column.scrollTo({ top: 0 }));
  }
}
