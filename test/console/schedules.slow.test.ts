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
    await page.getByRole("button", { name: "Run read the news now" }).click();
    await row.getByRole("link", { name: "delegated" }).click();
    await page.waitForFunction("location.hash.includes('open=dlg_')");
    await page.getByRole("button", { name: "Pause read the news" }).click();
    await row.getByText("paused").waitFor();
    expect((await alice.call("GET", `/v1/schedules/${id}`)).body).toMatchObject({ state: "paused" });
    await page.getByRole("button", { name: "Resume read the news" }).click();
    await page.getByRole("button", { name: "Pause read the news" }).waitFor();
  });
});
