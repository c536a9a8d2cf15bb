/** The questions as a list with one of them beside it. Needs a build. */
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;

async function ask(api: Api, task: string, question: Record<string, unknown>, by = api): Promise<string> {
  await api.agent("asker", { risks: [{ action: "deploy*", risk: "high" }] });
  const { id } = (await by.delegate("asker", { task })).body;
  const [{ lease_id: lease }] = (await api.lease("asker")).body.leases;
  expect((await api.interrupt(lease, question)).status).toBe(200);
  return id;
}

const deploy = (zone: string, seconds: number) => ({
  ...{ text: `Deploy to ${zone}?`, action: { name: "deploy", arguments: { zone } } },
  ...{ edit: true, expires_in_seconds: seconds },
});

async function open(url: string): Promise<{ page: Page; rows: Locator; detail: Locator }> {
  const { page } = await openTab(url, { movesClock: true, viewport: { width: 1280, height: 800 } });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".needs .request").first().waitFor();
  await showView(page, "#/needs");
  const detail = page.locator(".inbox-detail");
  await detail.locator(".request").waitFor();
  await pass(page, 1);
  return { page, rows: page.locator(".ask-row"), detail };
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("the question that is shown stays, whatever arrives, and triage needs no mouse", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const one = await ask(api, "Release one", deploy("eu", 1_000));
    const two = await ask(api, "Release two", deploy("us", 2_000));
    const words = await ask(api, "Write it", { text: "What tone?", expires_in_seconds: 3_000 });
    const { page, rows, detail } = await open(url);
    expect(await rows.count()).toBe(3);
    // The risk is known once the agents are read.
    await expect
      .poll(() => rows.first().textContent())
      .toMatch(/^asker for youhigh risk1[67] min leftDeploy to eu\?$/);
    await expect
      .poll(() => detail.textContent())
      .toMatch(/high risk[\s\S]*Release one[\s\S]*Delegatedby you/);

    // The mouse rests on Approve. A question that expires sooner comes, and waits.
    await detail.getByRole("button", { name: "Approve" }).hover();
    const sooner = await ask(api, "Release three", deploy("asia", 100));
    await page.getByText("4 waiting for you").waitFor({ state: "attached" });
    await until(async () => (await rows.count()) === 4);
    expect(await detail.locator(".request").textContent()).toContain("Deploy to eu?");
    // In the list, one that comes while it is in use waits behind a button.
    await rows.first().hover();
    const soonest = await ask(api, "Release four", deploy("africa", 90));
    await page.getByRole("button", { name: "1 new" }).waitFor();
    expect(await rows.count()).toBe(4);
    expect(await detail.locator(".request").textContent()).toContain("Deploy to eu?");

    await page.mouse.move(640, 10);
    await until(async () => (await rows.count()) === 5);
    await page.keyboard.press("a");
    // Nothing has the focus yet: nothing is decided, and the question gets it.
    expect(await page.getByRole("button", { name: "Undo" }).count()).toBe(0);
    await page.keyboard.press("a");
    await detail.getByText("Approved, not sent yet.").waitFor();
    await page.keyboard.press("u");
    await detail.getByRole("button", { name: "Approve" }).waitFor();
    // With a comment: into the field, out of it, and the key.
    await page.keyboard.press("j");
    await detail.getByText("Deploy to us?").first().waitFor();
    await page.keyboard.press("r");
    await page.keyboard.type("not today");
    await page.keyboard.press("Escape");
    await page.keyboard.press("d");
    await detail.getByText("Denied, not sent yet.").waitFor();
    // The next one, before the answer is sent; the text of its answer survives others and a reload.
    await page.keyboard.press("j");
    await detail.getByLabel("Answer in words").fill("dry");
    await page.keyboard.press("Escape");
    await page.keyboard.press("k");
    await page.keyboard.press("k");
    await page.keyboard.press("a");
    await pass(page, 5);
    const states = async () =>
      Promise.all([one, two, words, sooner, soonest].map(async (id) => (await api.get(id)).body.state));
    const ASKS = "input_required";
    await until(async () => (await states()).join() === ["submitted", "submitted", ASKS, ASKS, ASKS].join());
    expect((await api.get(two)).body.history.at(-1)).toMatchObject({
      parts: [{ text: "not today" }],
      metadata: { decision: "deny" },
    });
    // The comment that was sent is no draft any more, once the page knows that the broker has it.
    const drafts = () =>
      page.evaluate(() => {
        dispatchEvent(new Event("pagehide"));
        return sessionStorage.getItem("errand-drafts");
      });
    await expect.poll(drafts).not.toContain("not today");
    await page.reload();
    const write = page.locator(".ask-row", { hasText: "What tone?" });
    await write.click();
    await until(async () => (await detail.getByLabel("Answer in words").inputValue()) === "dry");
    expect(await page.evaluate("sessionStorage.length")).toBe(1);
    await page.locator(".account summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  test("equal questions are one row, and are decided together as far as they are shown", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const alice = await as(url, "caller:alice");
    const ids = [
      await ask(api, "Release one", deploy("eu", 1_000)),
      await ask(api, "Release two", { ...deploy("eu", 1_100), text: "And again?" }, alice),
    ];
    const other = await ask(api, "Release it elsewhere", deploy("us", 1_200), alice);
    const { page, rows, detail } = await open(url);
    expect(await rows.allInnerTexts()).toEqual([
      expect.stringMatching(/× 2[\s\S]*Deploy to eu/),
      expect.stringContaining("Deploy to us"),
    ]);
    const equal = detail.getByRole("region", { name: "Equal questions" });
    expect(await equal.locator("li").allInnerTexts()).toEqual([
      expect.stringMatching(/^Release one for you\s+Deploy to eu\?$/),
      expect.stringMatching(/^Release two for alice\s+And again\?$/),
    ]);
    const all = equal.getByRole("button", { name: "Approve all 2, as proposed" });
    await all.hover();
    // It comes under the resting mouse, so it is not among them.
    ids.push(await ask(api, "Release three", deploy("eu", 1_300)));
    await equal.getByRole("button", { name: "1 new" }).waitFor();
    await all.click();
    await equal.getByText("2 not sent yet.").waitFor();
    await equal.getByRole("button", { name: "Undo all" }).click();
    await all.click();
    await pass(page, 5);
    const states = async () => Promise.all([...ids, other].map(async (id) => (await api.get(id)).body.state));
    await until(async () => (await states()).join() === "submitted,submitted,input_required,input_required");

    // The one that came later can be chosen and answered, although its equals are over.
    await pass(page, 10);
    await until(async () => (await rows.count()) === 2);
    await rows.filter({ hasText: "Deploy to eu" }).click();
    await detail.getByText("Release three").first().waitFor();
    await detail.getByRole("button", { name: "Approve", exact: false }).first().click();
    await detail.getByText("Approved, not sent yet.").waitFor();
    await detail.getByRole("button", { name: "Undo" }).click();

    // By agent or person.
    await page.getByLabel("For whom").selectOption("caller:alice");
    await until(async () => (await rows.count()) === 1);
    expect(await rows.textContent()).toContain("Deploy to us?");
    expect(await page.evaluate("location.hash")).toBe("#/needs?for=caller%3Aalice");
  });
});
