/** Notifications in the console: what one is told of and how each channel goes, Test, Resume, Delete, the form. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { openTab, SKIP, showView, tick } from "../support/browser.ts";
import { startReceiver } from "../support/receiver.ts";
import { startSubscribed } from "../support/subscribed.ts";
import { until } from "../support/until.ts";

async function open(url: string, token: string): Promise<Page> {
  const { page } = await openTab(url, { expected: /status of 400/ });
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".needs h1").waitFor();
  await showView(page, "#/agents?part=notifications");
  return page;
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("adds a channel with all settings, tests it, says why it is paused, resumes and deletes it", async () => {
    const { url, ann, tick: deliver, ask } = await startSubscribed();
    let status = 204;
    const hook = await startReceiver(() => status);
    const page = await open(url, ann.token);
    await page.getByRole("heading", { name: "Nothing reaches you while this page is closed" }).waitFor();
    await page.getByLabel("Notify me by").selectOption("Webhook, for programs");
    await page.getByLabel("URL").fill(hook.url);
    await page.getByLabel("Access token").fill("let-me-in");
    await tick(page.getByLabel("The end of what I delegated"));
    await tick(page.getByLabel("One that is about to expire"), false);
    await page.getByLabel("Agents").fill("scout, coder");
    await page.getByLabel("After").fill("0.5");
    await page.getByLabel("Quiet from").fill("03:00");
    await page.getByLabel("Quiet until").fill("03:01");
    await page.getByRole("button", { name: "Add" }).click();
    const row = page.locator(".subscription");
    await row.waitFor();
    const list = async () => (await ann.call("GET", "/v1/subscriptions")).body.subscriptions;
    const [made] = await list();
    expect(made).toMatchObject({
      events: ["question", "question_expired", "ended"],
      filter: { agents: ["scout", "coder"] },
      deliver: [{ kind: "webhook", to: hook.url, after_seconds: 30 }],
      quiet: { from: "03:00", to: "03:01" },
    });
    const text = (await row.textContent()) ?? "";
    for (const part of [
      "webhook",
      hook.url,
      "after 30 seconds",
      "ok",
      "questions, expired questions, ends of scout, coder",
    ])
      expect(text).toContain(part);
    expect(text).not.toContain("for approver");

    await page.getByRole("button", { name: "Test webhook" }).click();
    await row.getByText("Test delivered.").waitFor();
    expect(hook.received[0]?.headers.authorization).toBe("Bearer let-me-in");
    status = 500;
    await page.getByRole("button", { name: "Test webhook" }).click();
    await row.getByText("Test failed: It answered with status 500.").waitFor();

    status = 410;
    await ann.call("PATCH", `/v1/subscriptions/${made.id}`, {
      quiet: null,
      deliver: [{ kind: "webhook", url: hook.url }],
    });
    await deliver();
    await ask();
    await deliver();
    await until(async () => (await list())[0].deliver[0].state === "paused");
    await showView(page, "#/agents");
    await showView(page, "#/agents?part=notifications");
    await row.getByText("paused").waitFor();
    await row.getByText("It answered with status 410. Since").waitFor();
    await row.getByText("1 waiting").waitFor();
    status = 204;
    await page.getByRole("button", { name: "Resume webhook" }).click();
    await row.getByText("ok", { exact: true }).waitFor();
    await deliver();
    await until(async () => (await list())[0].deliver[0].delivered_at !== null);

    await page.getByRole("button", { name: "Delete webhook" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
    expect(await list()).toEqual([]);
  });

  test("says what the broker refuses, and offers a caller nothing that it may not have", async () => {
    const { url, alice, ann, subscribe } = await startSubscribed();
    await subscribe(ann, {
      events: ["question"],
      deliver: [{ kind: "webhook", url: "https://example.com/" }],
    });
    const page = await open(url, alice.token);
    await page.getByLabel("The end of what I delegated").waitFor();
    expect(await page.getByLabel("Work that waits while nobody polls").count()).toBe(0);
    expect(await page.locator(".subscription").count()).toBe(0);
    await page.getByLabel("Notify me by").selectOption("Mail");
    await page.getByLabel("Address").fill("alice@example.com");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("alert").getByText("ERRAND_SMTP_URL").waitFor();
    for (const box of await page.locator("fieldset input").all()) await tick(box, false);
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("alert").getByText("Choose at least one thing").waitFor();
  });

  test("links of notifications open their delegation and their agent", async () => {
    const { url, ann, ask } = await startSubscribed();
    const { id } = await ask();
    const page = await open(url, ann.token);
    await page.evaluate(`location.hash = "#/d/${id}"`);
    await page.waitForFunction(`location.hash === "#/live?open=${id}"`);
    await page.evaluate(`location.hash = "#/agents/scout"`);
    await page.waitForFunction(`location.hash === "#/agents?name=scout"`);
    await page.getByRole("heading", { name: "scout" }).waitFor();
  });
});
