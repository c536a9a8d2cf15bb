/** What the browser keeps for the reader: saved views, and what is typed and not sent. Needs a build. */
import type { APIResponse, Locator, Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView, stopClock } from "../support/browser.ts";
import { until } from "../support/until.ts";

const LOST = /Failed to load resource|net::ERR_/;

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".account summary").waitFor();
}

async function signOut(page: Page): Promise<void> {
  await page.locator(".account summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
}

/** As a broker answers that failed after it began. */
const answerUnknown = (route: Route, taken: APIResponse): Promise<void> =>
  route.fulfill({
    status: 503,
    headers: {
      "content-type": "application/problem+json",
      "errand-broker": taken.headers()["errand-broker"] ?? "",
    },
    body: JSON.stringify({
      ...{
        type: "urn:errand:error:redis_unavailable",
        title: "Unavailable",
        status: 503,
        code: "redis_unavailable",
      },
      ...{ category: "TRANSPORT", detail: "Redis is away", recovery: "Try again.", retryable: true },
      details: { outcome: "unknown" },
      broker_id: taken.headers()["errand-broker"],
    }),
  });

const hashOf = (page: Page) => page.evaluate("location.hash");

describe.skipIf(SKIP)("in Chromium", () => {
  test("a search is saved under a name, for one principal, and its times move on", async () => {
    const { url, clock } = await startBroker();
    const api = client(url);
    const ann = await as(url, "approver:ann");
    await api.agent("scout");
    await api.delegate("scout", { task: "Look" });
    const { page } = await openTab(url);
    await signIn(page, OPERATOR);
    await showView(page, "#/find");
    // Nothing to save yet.
    expect(await page.getByRole("button", { name: "Save view" }).count()).toBe(0);
    await page.getByLabel("Agent", { exact: true }).selectOption("scout");
    await page.getByRole("link", { name: "Failed since yesterday" }).click();
    await page.getByRole("button", { name: "Save view" }).click();
    const name = page.getByLabel("Name of the view");
    await name.fill("Scout's failures");
    await name.press("Enter");
    const saved = page.getByRole("navigation", { name: "Saved views" });
    await saved.getByRole("link", { name: "Scout's failures" }).waitFor();
    expect(await saved.locator("[aria-current]").count()).toBe(1);
    const before = await hashOf(page);

    // A day later, "since yesterday" is another day.
    await signOut(page);
    clock.offset_ms += 24 * 3_600_000;
    await signIn(page, OPERATOR);
    await showView(page, "#/find");
    await saved.getByRole("link").click();
    expect(await hashOf(page)).toMatch(/state=failed&target=scout&ended_since=|target=scout.*state=failed/);
    expect(await hashOf(page)).not.toBe(before);
    const dayOf = (hash: unknown) => Date.parse(/ended_since=([\d-]+)/.exec(String(hash))?.[1] ?? "");
    expect(dayOf(await hashOf(page)) - dayOf(before)).toBe(24 * 3_600_000);
    await page.getByRole("button", { name: "Rename" }).click();
    await name.press("Escape");
    // The focus is back at the button.
    await page.locator("button:focus", { hasText: "Rename" }).waitFor();
    await page.keyboard.press("Enter");
    await name.fill("Failures");
    await page.keyboard.press("Enter");
    await saved.getByRole("link", { name: "Failures", exact: true }).waitFor();

    await signOut(page);
    await signIn(page, ann.token);
    await showView(page, "#/find");
    expect(await saved.count()).toBe(0);
    await signOut(page);
    await signIn(page, OPERATOR);
    await showView(page, "#/find");
    await saved.getByRole("link", { name: "Failures", exact: true }).click();
    await page.getByRole("button", { name: "Remove view" }).click();
    await until(async () => (await saved.count()) === 0);
    expect(await page.evaluate("localStorage.getItem('errand-views')")).toBe("[]");
  });

  test("a follow-up and a new delegation survive other views and a reload, and end when sent or signed out", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    const { page } = await openTab(url, { expected: LOST });
    await signIn(page, OPERATOR);
    await showView(page, `#/live?open=${id}`);
    const followUp = page.getByLabel("A follow-up for the agent");
    await followUp.fill("Look behind you");
    await page.getByRole("link", { name: "Timeline" }).click();
    await showView(page, "#/delegate");
    const [agent, task] = [page.getByLabel("Agent", { exact: true }), page.getByLabel("Task")];
    await task.fill("Count the words");
    await agent.fill("scuot");
    const file = { name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("one two") };
    await page.getByLabel("Files").setInputFiles(file);
    await page.getByText("7 B").waitFor();
    await showView(page, "#/agents");
    await showView(page, "#/delegate");
    // In the same page, the files are still there.
    await page.getByRole("button", { name: "Remove words.txt" }).waitFor();
    await page.reload();
    await until(async () => (await task.inputValue()) === "Count the words");
    await page.getByText("A reload of the page lost these files").waitFor();

    // What is wrong stands at its field, and goes once it is corrected.
    await task.press("Control+Enter");
    await page.getByText("Choose these files again, or leave them out.").waitFor();
    const dropped = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["one two three"], "words.txt", { type: "text/plain" }));
      return data;
    });
    for (const type of ["dragover", "drop"]) await page.dispatchEvent("h1", type, { dataTransfer: dropped });
    await page.getByText("13 B").waitFor();
    expect(await page.getByText("Choose these files again").count()).toBe(0);
    await agent.press("Control+Enter");
    const place = page.locator("form.delegate > div", { has: agent });
    await place.getByRole("alert").getByText("There is no agent of this name").waitFor();
    await until(() => agent.evaluate((field) => field === document.activeElement));
    await agent.fill("scout");
    expect(await page.getByRole("alert").count()).toBe(0);
    await task.press("Control+Enter");
    await page.locator(".summary", { hasText: "Count the words" }).waitFor();
    const { body } = await api.call("GET", "/v1/delegations?q=words");
    const [{ message }] = body.delegations;
    expect(message.parts.map((part: { filename?: string }) => part.filename)).toEqual([
      undefined,
      "words.txt",
    ]);
    await showView(page, "#/delegate");
    expect([await agent.inputValue(), await task.inputValue()]).toEqual(["", ""]);

    await showView(page, `#/live?open=${id}`);
    expect(await followUp.inputValue()).toBe("Look behind you");
    await followUp.press("Control+Enter");
    await page.locator(".conversation", { hasText: "Look behind you" }).waitFor();
    // The event may come before the answer.
    await expect.poll(() => followUp.inputValue()).toBe("");
    await page.evaluate("dispatchEvent(new Event('pagehide'))");
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
    await followUp.fill("Once more");
    await signOut(page);
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
    await signIn(page, OPERATOR);
    await showView(page, `#/live?open=${id}`);
    expect(await followUp.inputValue()).toBe("");
  });

  /** How the answer to a request that the broker took is lost, and what the page then says. */
  const LOSSES: readonly (readonly [
    string,
    (route: Route, taken: APIResponse) => Promise<void>,
    RegExp | null,
  ])[] = [
    ["a connection that breaks", (route) => route.abort(), /The broker does not answer\./],
    [
      "a failure that may come after the change",
      (route, taken) => answerUnknown(route, taken),
      /Redis is away|may have it/,
    ],
    ["a reload before the answer", async () => undefined, null],
  ];
  test.each(LOSSES)("work and a follow-up whose answer was lost arrive once: %s", async (_, lose, said) => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { page } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    const sendAndLose = async (field: Locator, address: RegExp) => {
      let taken = 0;
      await page.route(address, async (route) => {
        const answer = await route.fetch();
        taken += 1;
        await lose(route, answer);
      });
      await field.press("Control+Enter");
      await until(async () => {
        await page.clock.fastForward(1_000);
        return said === null ? taken > 0 : page.getByRole("alert").getByText(said).first().isVisible();
      });
      // In this order: a request that is held would go on.
      await page.reload();
      await page.unrouteAll({ behavior: "ignoreErrors" });
    };
    await showView(page, "#/delegate?target=scout");
    const task = page.getByLabel("Task");
    await task.fill("Once");
    const files = ["a", "b"].map((name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(name) }));
    await page.getByLabel("Files").setInputFiles(files);
    await sendAndLose(task, /\/v1\/delegations$/);
    await until(async () => (await task.inputValue()) === "Once");
    for (const file of files) {
      await page.getByText("A reload of the page lost these files").waitFor();
      await page.getByLabel("Files").setInputFiles(file);
    }
    await task.press("Control+Enter");
    await page.locator(".summary", { hasText: "Once" }).waitFor();
    const { delegations } = (await api.call("GET", "/v1/delegations")).body;
    expect(delegations).toHaveLength(1);

    const followUp = page.getByLabel("A follow-up for the agent");
    await followUp.fill("And hurry");
    await sendAndLose(followUp, /\/messages$/);
    await until(async () => (await followUp.inputValue()) === "And hurry");
    await followUp.press("Control+Enter");
    await until(async () => (await followUp.inputValue()) === "");
    const { history } = (await api.get(delegations[0].id)).body;
    expect(JSON.stringify(history).split("And hurry")).toHaveLength(2);
  });

  test("what is typed while a delegation is sent stays, and who has left the form stays where they are", async () => {
    const { url } = await startBroker();
    await client(url).agent("scout");
    const { page } = await openTab(url);
    await signIn(page, OPERATOR);
    await showView(page, "#/delegate?target=scout");
    const task = page.getByLabel("Task");
    await task.fill("First");
    const held: Route[] = [];
    await page.route(/\/v1\/delegations$/, async (route) => {
      held.push(route);
    });
    await task.press("Control+Enter");
    await until(() => held.length === 1);
    await task.fill("Second");
    await showView(page, "#/agents");
    const answered = page.waitForResponse(/\/v1\/delegations$/);
    await held[0]?.continue();
    await answered;
    await showView(page, "#/delegate");
    expect(await task.inputValue()).toBe("Second");
  });

  test("what is typed before the page has drawn the form stays", async () => {
    const { url } = await startBroker();
    await client(url).agent("scout");
    const { page } = await openTab(url, { movesClock: true });
    await signIn(page, OPERATOR);
    await showView(page, "#/delegate");
    await showView(page, "#/agents");
    await stopClock(page);
    await page.evaluate(() => {
      location.hash = "#/delegate?target=scout";
    });
    const task = page.getByLabel("Task");
    await task.fill("First");
    await page.clock.resume();
    await page.clock.fastForward(1_000);
    expect(await task.inputValue()).toBe("First");
    expect(await page.getByLabel("Agent", { exact: true }).inputValue()).toBe("scout");
  });

  test("what is typed as soon as a form is there is in its first field", async () => {
    const { url } = await startBroker();
    await client(url).agent("scout");
    const { page } = await openTab(url, { movesClock: true });
    await signIn(page, OPERATOR);
    await showView(page, "#/delegate");
    await showView(page, "#/find?state=failed");
    const save = page.getByRole("button", { name: "Save view" });
    await save.waitFor();
    await stopClock(page);
    await save.click();
    await page.keyboard.type("Mine");
    expect(await page.getByLabel("Name of the view").inputValue()).toBe("Mine");
    await page.evaluate(() => {
      location.hash = "#/delegate";
    });
    const [agent, task] = [page.getByLabel("Agent", { exact: true }), page.getByLabel("Task")];
    await task.waitFor();
    await page.keyboard.type("scuot");
    expect(await agent.inputValue()).toBe("scuot");
    await agent.fill("");
    await task.fill("Count");
    await showView(page, "#/find?state=failed");
    // Where an address names the agent, the task is next, whatever was typed before.
    await page.evaluate(() => {
      location.hash = "#/delegate?target=scout";
    });
    await task.waitFor();
    expect(await task.evaluate((field) => field === document.activeElement)).toBe(true);
  });

  test("a sign-out in another tab erases what was typed in a tab that waits for the broker", async () => {
    const { url } = await startBroker();
    const { page, context } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    await showView(page, "#/delegate");
    await page.getByLabel("Task").fill("Mine");
    await page.route(/\/v1\/status/, (route) => route.abort());
    await page.reload();
    await until(async () => {
      await page.clock.fastForward(1_000);
      return page.getByText("The broker does not answer.").first().isVisible();
    });
    // The browser may tell a page late what its tab wrote before the reload: that is no sign-out.
    await page.evaluate(() => {
      const key = "errand-session";
      dispatchEvent(
        new StorageEvent("storage", { key, oldValue: null, newValue: localStorage.getItem(key) }),
      );
    });
    expect(await page.evaluate("sessionStorage.length")).toBe(1);
    const other = await context.newPage();
    await other.goto(url);
    await other.locator(".account summary").waitFor();
    await signOut(other);
    await until(async () => (await page.evaluate("sessionStorage.length")) === 0);
  });
});
