/** Work that waits for its parts: where it is listed, and for whom it waits. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP } from "../support/browser.ts";
import { waitForParts } from "./look-scenes.ts";

const TASK = "Ship version 2.5 of the search";

async function setup() {
  const { url } = await startBroker();
  const api = client(url);
  const id = await waitForParts(api);
  const { page } = await openTab(url, { viewport: { width: 1440, height: 900 } });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  return { url, api, id, page };
}

const part = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

/** Cancels the delegation of the agent. */
async function end(api: ReturnType<typeof client>, agent: string, task: RegExp): Promise<void> {
  const { delegations } = (await api.call("GET", `/v1/delegations?target=${agent}`)).body;
  const { id } = delegations.find((one: { task_preview: string }) => task.test(one.task_preview));
  await api.cancel(id);
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("Live lists it by itself, neither in progress nor queued, with its agent, and follows it", async () => {
    const { api, page } = await setup();
    const waiting = part(page, "Waiting for parts").locator(".row", { hasText: TASK });
    await waiting.getByText("waits for 2 parts: builder, tester").waitFor();
    for (const other of ["In progress", "Queue"])
      expect(await part(page, other).getByText(TASK).count()).toBe(0);
    await page.getByText("3 delegations: 1 working, 1 waiting for parts, 1 queued").waitFor();
    const line = page.locator(".agent-row[data-row=lead]");
    await line.getByTitle("1 waits for parts").getByText("1").waitFor();
    expect(await line.locator(".sr-only").textContent()).toContain("1 waits for parts");
    await end(api, "tester", /staging/);
    await waiting.getByText("waits for 1 part: builder").waitFor();
    await end(api, "builder", /Build/);
    await part(page, "Queue").locator(".row", { hasText: TASK }).waitFor();
    expect(await part(page, "Waiting for parts").count()).toBe(0);
  });

  test("Find has a frequent search for it while there is any, and says for whom it waits", async () => {
    const { url, page } = await setup();
    await page.goto(`${url}/#/find`);
    await page.getByRole("link", { name: "Waiting for parts" }).click();
    await page.getByText("1 delegation", { exact: true }).waitFor();
    await page.locator(".found", { hasText: "waits for 2 parts: builder, tester" }).waitFor();
    expect(await page.getByLabel("State").locator("option:checked").textContent()).toBe("waits for parts");
  });

  test("its head names the parts and how each of them is, and follows their ends", async () => {
    const { url, api, id, page } = await setup();
    await page.goto(`${url}/#/live?open=${id}`);
    const head = part(page, "What it waits for");
    await head.getByText(/^It waits for 2 of 3 parts to end, at most .*; then lead goes on\.$/).waitFor();
    const lines = () => head.locator("li").allTextContents();
    await expect
      .poll(lines)
      .toEqual([
        "Build the packages of version 2.5builder, working",
        "Test version 2.5 on stagingtester, queued",
        "Write the notes of version 2.5builder, completed",
      ]);
    await end(api, "tester", /staging/);
    await head.getByText(/^It waits for 1 of 3 parts to end/).waitFor();
    await expect.poll(async () => (await lines()).join()).toContain("stagingtester, canceled");
  });

  test("its timeline draws the wait, and says for whom it waits, in the bar, the row and the events", async () => {
    const { url, api, id, page } = await setup();
    await page.goto(`${url}/#/live?tab=timeline&open=${id}`);
    const row = page.locator(`.fall-row[data-id="${id}"]`);
    const bar = row.locator(".fall-bar.awaits");
    await expect
      .poll(() => bar.getAttribute("data-note"))
      .toMatch(/^waits for 3 parts: builder \(2\), tester · since 0:\d\d$/);
    const heights = await row
      .locator(".fall-bar")
      .evaluateAll((bars) => bars.map((one) => [one.className.split(" ")[1], one.clientHeight] as const));
    const heightOf = (look: string) => heights.find(([one]) => one === look)?.[1] ?? 0;
    expect(heightOf("awaits")).toBeLessThan(heightOf("working") / 2);
    expect(await row.getAttribute("aria-label")).toContain("waits for 3 parts: builder (2), tester");
    const events = part(page, "Events of lead");
    await events.getByText("the worker gave it back until 2 of 3 parts have ended").waitFor();
    await end(api, "tester", /staging/);
    await end(api, "builder", /Build/);
    await events.getByText("queued again: its parts have ended").waitFor();
  });
});
