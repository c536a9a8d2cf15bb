/** Schedules in the console: what each delegates, when it runs next, how it went, and its buttons. Needs a build. */
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";

describe.skipIf(SKIP)("in Chromium", () => {
  test("shows when each runs next, runs one now, pauses and resumes it", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const { page } = await openTab(url, { viewport: { width: 1280, height: 800 } });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".needs h1").waitFor();
    await showView(page, "#/agents?part=schedules");
    await page.getByRole("heading", { name: "No schedule yet" }).waitFor();
    await api.agent("scout");
    const alice = await as(url, "caller:alice");
    const delegation = { target: "scout", task: "read the news" };
    const body = { cron: "30 9 * * MON-FRI", time_zone: "Europe/Berlin", delegation };
    const { id } = (await alice.call("POST", "/v1/schedules", body)).body;
    await showView(page, "#/agents");
    await showView(page, "#/agents?part=schedules");
    const row = page.locator(".schedule");
    await row.waitFor();
    const text = (await row.textContent()) ?? "";
    for (const part of [
      "read the news",
      "caller:alice → scout",
      "30 9 * * MON-FRI (Europe/Berlin)",
      "active",
    ])
      expect(text).toContain(part);
    expect(text).toMatch(/, next \d+ /);
    await page.getByRole("button", { name: "Run now: read the news" }).click();
    await row.getByRole("link", { name: "delegated" }).click();
    await page.waitForFunction("location.hash.includes('open=dlg_')");
    await page.getByRole("button", { name: "Pause read the news" }).click();
    await row.getByText("paused").waitFor();
    expect((await alice.call("GET", `/v1/schedules/${id}`)).body).toMatchObject({ state: "paused" });
    await page.getByRole("button", { name: "Resume read the news" }).click();
    await page.getByRole("button", { name: "Pause read the news" }).waitFor();
  });

  test("creates one, changes exactly what was edited, says what is wrong, and deletes it", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    await api.agent("coder");
    const alice = await as(url, "caller:alice");
    const list = async () => (await alice.call("GET", "/v1/schedules")).body.schedules;
    const { page } = await openTab(url, { timezoneId: "Europe/Berlin", expected: /status of 400/ });
    await page.getByLabel("Token").fill(alice.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".needs h1").waitFor();
    await showView(page, "#/agents?part=schedules");
    await page.getByRole("button", { name: "New schedule" }).click();
    const form = page.locator(".schedule-form");
    await form.getByLabel("Agent").fill("scout");
    await form.getByLabel("Task").fill("read the news");
    await form.getByRole("textbox", { name: "Times" }).fill("30 25 * * *");
    await form.getByRole("button", { name: "Create" }).click();
    await form.getByRole("alert").waitFor();
    await form.getByRole("textbox", { name: "Times" }).fill("30 9 * * MON-FRI");
    await form.getByLabel("While an earlier one runs").selectOption("leave it out");
    // What is typed stays in another view, and when the page is reloaded.
    await showView(page, "#/live");
    await showView(page, "#/agents?part=schedules");
    await form.getByLabel("Task").and(page.locator("textarea")).waitFor();
    expect(await form.getByLabel("Task").inputValue()).toBe("read the news");
    await page.reload();
    await form.waitFor();
    await form.getByRole("button", { name: "Create" }).click();
    await page.locator(".schedule").waitFor();
    expect(await form.count()).toBe(0);
    await page.reload();
    await page.getByRole("button", { name: "New schedule" }).waitFor();
    const [made] = await list();
    expect(made).toMatchObject({
      ...{ name: null, cron: "30 9 * * MON-FRI", time_zone: "Europe/Berlin", overlap: "skip", missed: "one" },
      delegation: { target: "scout", task: "read the news" },
    });

    await alice.call("PATCH", `/v1/schedules/${made.id}`, {
      delegation: { target: "scout", task: "read the news", priority: 7 },
    });
    await page.getByRole("button", { name: "Edit read the news" }).click();
    expect(await form.getByRole("textbox", { name: "Times" }).inputValue()).toBe("30 9 * * MON-FRI");
    // What somebody else changes meanwhile stays.
    await alice.call("PATCH", `/v1/schedules/${made.id}`, { missed: "all" });
    await form.getByLabel(/^When/).selectOption("again and again after a time");
    await form.getByLabel("Every", { exact: true }).fill("90");
    await form.getByLabel(/^Unit/).selectOption("minutes");
    await form.getByLabel("Name").fill("News");
    await form.getByRole("button", { name: "Save" }).click();
    await page.locator(".schedule", { hasText: "News" }).getByText("every 1 h 30 min").waitFor();
    const [edited] = await list();
    expect(edited).toMatchObject({
      ...{ name: "News", every_seconds: 5_400, overlap: "skip", missed: "all" },
      delegation: { target: "scout", task: "read the news", priority: 7 },
    });
    expect(edited).not.toHaveProperty("cron");

    await page.getByRole("button", { name: "Edit News" }).click();
    await form.getByLabel("Agent").fill("coder");
    await form.getByRole("button", { name: "Save" }).click();
    await page.locator(".schedule").getByText("caller:alice → coder").waitFor();
    const other = { ...edited.delegation, target: "coder" };
    expect((await list())[0].delegation).toEqual(other);

    // The secrets of a callback cannot be sent again.
    const callback = { url: "https://example.com/hook", token: "secret" };
    await alice.call("PATCH", `/v1/schedules/${made.id}`, { delegation: { ...other, callback } });
    await showView(page, "#/agents");
    await showView(page, "#/agents?part=schedules");
    await page.getByRole("button", { name: "Edit News" }).click();
    await form.getByText("errand schedule change").waitFor();
    expect(await form.getByLabel("Task").isDisabled()).toBe(true);
    await form.getByLabel("Name").fill("");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Delete read the news" }).click();
    expect((await list())[0]).toMatchObject({ name: null, delegation: { callback: { url: callback.url } } });
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "No schedule yet" }).waitFor();
    expect(await list()).toEqual([]);
  });
});
