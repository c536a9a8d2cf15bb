/** What is typed for a field before it has the focus decides nothing. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { holdBack, openTab, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

/** An editable proposal, whose row in the list of questions has the focus. */
async function openQuestion(held?: RegExp) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("deployer");
  const { id } = (await api.delegate("deployer", { task: "Ship it" })).body;
  const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
  const action = { name: "deploy", arguments: { to: "eu" } };
  const { status } = await api.interrupt(lease, { text: "Deploy?", action, edit: true });
  expect(status).toBe(200);
  const { page } = await openTab(url, { movesClock: true });
  const part = held && (await holdBack(page, held));
  // The last part that the page loads in advance.
  const isWhole = held
    ? undefined
    : page.waitForEvent("requestfinished", (one) => /files-tab-/.test(one.url()));
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".agent-row").first().waitFor();
  await page.evaluate("location.hash = '#/needs'");
  await page.locator("main button[name=approve]").waitFor();
  await isWhole;
  const row = page.locator(".ask-row");
  await row.focus();
  return { page, row, part, state: async (): Promise<string> => (await api.get(id)).body.state };
}

/** From here on, nothing that the page does after it has drawn happens until `draw`. */
async function holdDrawing(page: Page): Promise<void> {
  await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 10_000);
}

/** Long enough that a decision would be sent, and could not be taken back. */
async function draw(page: Page): Promise<void> {
  await page.clock.resume();
  await page.clock.fastForward(20_000);
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("the palette has the first letter, and asks with the focus on what does nothing", async () => {
    const { page, state } = await openQuestion();
    await holdDrawing(page);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("da");
    expect(await page.locator(".palette input").inputValue()).toBe("da");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("pause deployer");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.locator(".palette").waitFor({ state: "detached" });
    await draw(page);
    expect(await state()).toBe("input_required");
  });

  test("a palette that is still loading takes no letter for a decision, and Escape ends it", async () => {
    const { page, row, part, state } = await openQuestion(/palette-/);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("da");
    await page.keyboard.press("Escape");
    part?.release();
    await draw(page);
    expect(await page.locator("dialog[open]").count()).toBe(0);
    expect(await row.evaluate((one) => one === document.activeElement)).toBe(true);
    expect(await state()).toBe("input_required");
    await page.keyboard.press("d");
    await draw(page);
    await until(async () => (await state()) !== "input_required");
  });

  test.each([
    ["the palette", "Control+k", /palette-/],
    ["Find", "/", /find-/],
  ])("while %s is still loading, Space and Enter press no button", async (_what, key, held) => {
    const { page, part, state } = await openQuestion(held);
    await showView(page, "#/live");
    const approve = page.locator(".needs button[name=approve]");
    await approve.focus();
    await page.keyboard.press(key);
    await page.keyboard.type("ship it");
    await page.keyboard.press("Enter");
    // Also for as long as that takes.
    await page.clock.fastForward(5_000);
    expect(await approve.evaluate((one) => one === document.activeElement)).toBe(true);
    await page.keyboard.type("data it");
    await page.keyboard.press("Control+Enter");
    part?.release();
    await page.locator(".palette input, main [name=q]").first().waitFor();
    await draw(page);
    expect(await state()).toBe("input_required");
  });

  test("who gives up on a Find that is loading has the keys of the questions again", async () => {
    const { page, state } = await openQuestion(/find-/);
    await showView(page, "#/live");
    await page.locator(".needs button[name=approve]").focus();
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await page.keyboard.press("d");
    await draw(page);
    await until(async () => (await state()) !== "input_required");
  });

  test("the field of Find has the first letter", async () => {
    const { page, row, state } = await openQuestion();
    await showView(page, "#/find");
    await showView(page, "#/needs");
    await page.locator("main button[name=approve]").waitFor();
    await row.focus();
    await holdDrawing(page);
    await page.keyboard.press("/");
    await page.keyboard.type("data");
    expect(await page.getByLabel("Text of the task").inputValue()).toBe("data");
    await draw(page);
    expect(await state()).toBe("input_required");
  });

  test("while Find is still loading, letters decide nothing", async () => {
    const { page, part, state } = await openQuestion(/find-/);
    await page.keyboard.press("/");
    await page.keyboard.type("data");
    await page.locator(".needs .question").waitFor();
    await page.keyboard.type("da");
    part?.release();
    await page.getByLabel("Text of the task").waitFor();
    await draw(page);
    expect(await state()).toBe("input_required");
  });

  test("the first field of an edit has the first letter", async () => {
    const { page, state } = await openQuestion();
    await holdDrawing(page);
    await page.keyboard.press("e");
    await page.keyboard.type("da");
    expect(await page.locator(".edit .fields :is(input, textarea)").first().inputValue()).toContain("da");
    await draw(page);
    expect(await state()).toBe("input_required");
  });
});
