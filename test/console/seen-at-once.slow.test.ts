/** What failed, and what a search found, is seen without looking for it; names stand where names are known. Needs a build. */
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, type TabOptions } from "../support/browser.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;

const PHONE = { viewport: { width: 390, height: 844 } };
const LAPTOP = { viewport: { width: 1280, height: 720 } };

async function open(url: string, hash: string, options: TabOptions = {}): Promise<Page> {
  const { page } = await openTab(url, options);
  await page.goto(`${url}/${hash}`);
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  return page;
}

/** Delegates it, and ends it in the state. */
async function end(api: Api, target: string, task: string, state: "completed" | "failed" | "rejected") {
  await api.delegate(target, { task, max_attempts: 1 });
  const { body } = await api.lease(target, { wait_seconds: 5 });
  const error =
    state === "completed" ? {} : { error: { code: "disk_full", message: `No space for ${task}` } };
  await api.reply(String(body.leases[0]?.lease_id), { state, text: "done", ...error });
}

/** Whether all of it is in the window. */
async function isInView(page: Page, what: Locator): Promise<boolean> {
  const box = await what.boundingBox();
  const { height = 0 } = page.viewportSize() ?? {};
  // Of a phone, the bar with the views covers the rest.
  return box !== null && box.y >= 0 && box.y + box.height <= height - 56;
}

describe.skipIf(SKIP)("in Chromium", () => {
  test.each([
    ["light, on a laptop", { ...LAPTOP, colorScheme: "light" }, "rgb(185, 28, 28)"],
    ["dark, on a phone", { ...PHONE, colorScheme: "dark" }, "rgb(248, 113, 113)"],
  ] as const)(
    "what failed stands first in Live within seconds, and leads to Find (%s)",
    async (_, look, red) => {
      const { url } = await startBroker();
      const api = client(url);
      for (const name of ["coder", "scout"]) await api.agent(name);
      await end(api, "scout", "Count the words", "completed");
      const page = await open(url, "#/live", look);
      await page.getByText("1 ok", { exact: true }).waitFor();
      expect(await page.locator(".failures-line").count()).toBe(0);
      // Nobody reloads the page.
      await end(api, "coder", "Fix the login", "failed");
      const line = page.locator(".alarms li").first();
      await line.getByText("1 failed in the last hour: coder").waitFor();
      expect(await isInView(page, line)).toBe(true);
      expect(await line.locator(".mark.failed").count()).toBe(1);
      expect(await line.locator(".alarm-text").evaluate((text) => getComputedStyle(text).color)).toBe(red);
      const row = page.locator(".agent-row[data-row=coder] .failed", { hasText: "1 failed" });
      expect(await row.evaluate((one) => getComputedStyle(one).color)).toBe(red);
      expect(await row.locator(".mark").count()).toBe(1);
      // A rejected delegation did not get done, either.
      await end(api, "scout", "Sum it up", "rejected");
      await line.getByText("2 failed in the last hour: coder, scout").waitFor();
      await line.getByRole("link", { name: "See why" }).click();
      await page.getByText("2 delegations").waitFor();
      await page.getByText("No space for Sum it up").waitFor();
      await page.getByText("No space for Fix the login").waitFor();
      await page.goBack();
      await line.getByRole("link", { name: "scout" }).click();
      await page.getByText("1 delegation", { exact: true }).waitFor();
      await page.getByText("No space for Sum it up").waitFor();
    },
  );

  test("while the mouse rests in Live, a failure moves nothing and waits behind a button", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (const name of ["coder", "nightly"]) await api.agent(name);
    await api.delegate("nightly");
    await api.call("POST", "/v1/agents/nightly/pause");
    const page = await open(url, "#/live", LAPTOP);
    const paused = page.locator(".alarm-line", { hasText: "paused" });
    await paused.hover();
    const before = await paused.boundingBox();
    await end(api, "coder", "Fix the login", "failed");
    await page.getByRole("button", { name: "1 new alarm" }).waitFor();
    expect(await paused.boundingBox()).toEqual(before);
    await page.getByRole("button", { name: "1 new alarm" }).click();
    await page.getByText("1 failed in the last hour: coder").waitFor();
  });

  test("a button that shows more says of what, and the marks of workers are explained", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (let n = 0; n < 5; n += 1) {
      await api.agent(`agent-${n}`);
      await api.delegate(`agent-${n}`);
    }
    const page = await open(url, "#/live", PHONE);
    await page.getByRole("button", { name: "2 more alarms", exact: true }).waitFor();
    const legend = page.locator(".slots-legend");
    expect(await legend.textContent()).toMatch(/busy\s*free/);
    expect(await legend.locator(".slot.busy").isVisible()).toBe(true);
    // It stays in one line.
    expect((await legend.boundingBox())?.height).toBeLessThan(24);
  });

  test.each([
    ["a laptop", LAPTOP],
    ["a phone", PHONE],
  ])("on %s, Find begins with what it found: what failed is counted at its top", async (_, look) => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    await end(api, "coder", "The oldest", "failed");
    for (let n = 0; n < 10; n += 1) await end(api, "coder", `Later ${n}`, "completed");
    const page = await open(url, "#/find", look);
    const isPhone = look === PHONE;
    const failed = page.getByRole("link", { name: "1 failed", exact: true });
    await failed.waitFor();
    expect(await isInView(page, failed)).toBe(true);
    // The rows have more than half of the page; on a laptop, all of them are in view.
    const top = (await page.locator(".found").first().boundingBox())?.y ?? 999;
    expect(top).toBeLessThan(isPhone ? 240 : 200);
    const oldest = page.locator(".found", { hasText: "The oldest" });
    expect(await isInView(page, oldest)).toBe(!isPhone);
    expect(await page.getByLabel("State", { exact: true }).isVisible()).toBe(!isPhone);
    await failed.click();
    await page.getByText("1 delegation", { exact: true }).waitFor();
    await until(() => isInView(page, oldest));
    if (!isPhone) return;
    // What is asked for is said, though its fields are folded; and they unfold.
    await page.getByRole("link", { name: "Without: failed" }).waitFor();
    await page.getByRole("button", { name: "Filters", exact: true }).click();
    expect(await page.getByLabel("State", { exact: true }).inputValue()).toBe("failed");
    await page.getByRole("link", { name: "Ended in the last hour" }).click();
    await page.getByText("11 delegations").waitFor();
  });

  test("a question's Markdown is formatted, also of the task beside it", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    await api.delegate("coder", { task: "# Deploy\n\nSince **Tuesday** it is slow." });
    const { body } = await api.lease("coder");
    await api.interrupt(String(body.leases[0]?.lease_id), {
      text: "Do **not** wait:\n\n- `search`\n- billing",
      options: ["Go", "Stop"],
    });
    const page = await open(url, "#/needs");
    const card = page.locator("article.question");
    await card.locator("strong", { hasText: "not" }).waitFor();
    expect(await card.locator("li code").textContent()).toBe("search");
    expect(await card.textContent()).not.toContain("**");
    await page.locator(".about-work strong", { hasText: "Tuesday" }).waitFor();
  });

  test("the log names tasks rather than ids, Revoke is a button, and a worker's own time is mentioned", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const { id } = (await api.delegate("coder", { task: "Tag version 2.4.1" })).body;
    const { body } = await api.lease("coder");
    const action = { name: "tag", arguments: { version: "2.4.1" } };
    const asked = await api.interrupt(String(body.leases[0]?.lease_id), { text: "Tag?", action });
    await api.answer(id, asked.body.interrupt_id, { decision: "approve" });
    await api.call("POST", "/v1/tokens", { principal: "caller:ann" });
    const page = await open(url, "#/agents?part=log");
    await page.locator(".log li", { hasText: "approved tag in Tag version 2.4.1" }).waitFor();
    await page.getByRole("link", { name: "Tag version 2.4.1" }).click();
    await page.waitForURL((to) => to.hash.includes(`open=${id}`));
    await page.goto(`${url}/#/agents?part=tokens`);
    const revoke = page.getByRole("button", { name: /^Revoke the token of caller:ann/ });
    const edge = await revoke.evaluate((button) => getComputedStyle(button).borderTopColor);
    expect(edge).toBe("rgb(124, 138, 160)");
    await page.goto(`${url}/#/agents?name=coder`);
    await page
      .locator("label", { hasText: "A silent worker loses its work after" })
      .getByText("unless it asked for another time")
      .waitFor();
  });
});
