/** An empty console: what it is, the first steps, and the demo that runs in the page. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

/** A worker's heartbeat may cross its own reply, or the deletion of its agent. */
const CROSSED = /Failed to load resource|net::ERR_/;

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#live-title").waitFor();
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("the page says what it is, and an empty one has three steps with commands that fit", async () => {
    const { url } = await startBroker();
    const { page } = await openTab(url);
    await page.getByText("Hand work to agents, see who works on what").waitFor();
    await signIn(page, OPERATOR);
    await page.locator(".header").getByText("Agents do the work, and ask people here.").waitFor();
    const steps = page.getByRole("region", { name: "First steps" });
    await steps.waitFor();
    const commands = () => steps.locator(".copy-line code").allTextContents();
    expect(await commands()).toEqual([
      "./errand work --agent scout -- wc -w",
      './errand delegate scout "count these words" --wait',
      "./errand inbox",
    ]);
    await steps.getByLabel("You run errand").selectOption("installed");
    expect((await commands())[0]).toBe("errand work --agent scout -- wc -w");
    await steps.getByLabel("You run errand").selectOption("elsewhere");
    expect((await commands())[2]).toBe(`ERRAND_URL=${url} ERRAND_TOKEN=… errand inbox`);
    // An agent without work is no reason to stop explaining; work is.
    const api = client(url);
    await api.agent("coder");
    await page.reload();
    await steps.getByText("work --agent coder").waitFor();
    const { id } = (await api.delegate("coder", { task: "Fix it" })).body;
    await api.cancel(id);
    await page.reload();
    await page.getByRole("heading", { name: "Nothing in progress" }).waitFor();

    // Only the operator may create the agents of the demo.
    const other = await startBroker();
    const { page: second } = await openTab(other.url);
    await signIn(second, (await as(other.url, "caller:alice")).token);
    await second.getByText(`ERRAND_URL=${other.url} ERRAND_TOKEN=… errand inbox`).waitFor();
    expect(await second.getByRole("button", { name: "Run the demo" }).count()).toBe(0);
  });

  test("the demo works in the page, asks, and leaves nothing: removed, or with its page", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const agents = async (): Promise<string[]> =>
      (await api.call("GET", "/v1/agents")).body.agents.map(({ name }: { name: string }) => name);
    const { page } = await openTab(url, { movesClock: true, expected: CROSSED });
    await signIn(page, OPERATOR);
    await page.getByRole("button", { name: "Run the demo" }).click();
    const note = page.getByRole("region", { name: "Demo" });
    await note.waitFor();
    const question = page.locator(".needs .question", { hasText: "May I publish them?" });
    await until(async () => {
      await pass(page, 2);
      return question.isVisible();
    });
    const names = await agents();
    expect(names).toEqual([
      expect.stringMatching(/^demo-checker-[0-9a-f]{6}$/),
      expect.stringMatching(/^demo-writer-[0-9a-f]{6}$/),
    ]);
    await question.getByRole("button", { name: "Approve" }).click();
    await until(async () => {
      await pass(page, 4);
      return page.locator(".reply", { hasText: "I published" }).isVisible();
    });
    await note.getByRole("button", { name: "Remove the demo" }).click();
    await note.waitFor({ state: "detached" });
    expect(await agents()).toEqual([]);
    expect((await api.call("GET", "/v1/delegations")).body.delegations).toEqual([]);

    // With the page, its agents go, and so does what they work on.
    await showView(page, "#/live");
    await page.getByRole("button", { name: "Run the demo" }).click();
    await note.getByRole("link", { name: "its delegation" }).waitFor();
    expect(await agents()).toHaveLength(2);
    await page.goto("about:blank");
    await until(async () => (await agents()).length === 0);
    const { delegations } = (await api.call("GET", "/v1/delegations")).body;
    for (const { state } of delegations) expect(["canceled", "completed"]).toContain(state);
  });

  test("what a lost page of the demo left is offered to be removed", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("demo-writer-0a1b2c", { description: "An agent of the console's demo: writes" });
    // Somebody else's.
    await api.agent("demo-writer-0a1b2d", { description: "Our own" });
    const { id } = (await api.delegate("demo-writer-0a1b2c", { task: "Write" })).body;
    // The page may read the delegation again while it is erased.
    const { page } = await openTab(url, { expected: /404 \(Not Found\)/ });
    await signIn(page, OPERATOR);
    const note = page.getByRole("region", { name: "Demo" });
    await note.getByText("A demo was not removed: demo-writer-0a1b2c.").waitFor();
    await note.getByRole("button", { name: "Remove the demo" }).click();
    await note.waitFor({ state: "detached" });
    // The note is about agents: what was delegated to them is erased after them.
    await until(async () => (await api.get(id)).status === 404);
    expect((await api.call("GET", "/v1/agents")).body.agents).toHaveLength(1);
  });
});
