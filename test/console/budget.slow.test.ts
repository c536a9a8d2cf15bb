/** Budgets in the console: the broker's question for a larger one, what was used, and those of agents and tokens. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, tick } from "../support/browser.ts";
import { until } from "../support/until.ts";

const TASK = "Count all words";

/** Work of `lead` that used more than its budget, so that the broker asks; and a page that shows it. */
async function setup() {
  const { url, clock, gateway } = await startBroker();
  const api = client(url);
  await api.agent("lead");
  const body = { task: TASK, budget: { tokens: 100 }, on_budget: "ask" };
  const { id } = (await api.delegate("lead", body)).body;
  const [{ lease_id }] = (await api.lease("lead", { lease_seconds: 3_600 })).body.leases;
  await api.heartbeat(lease_id, { usage: { input_tokens: 150 } });
  await gateway.sweep.tick();
  clock.offset_ms += 31_000;
  await gateway.sweep.tick();
  const page = await open(url);
  const card = page.locator(".needs .question");
  await card.getByText("The broker, about lead").waitFor();
  await card.getByText("More than the budget is used: tokens 150 of 100. May it use more?").waitFor();
  await card.getByText("raise_budget").waitFor();
  const delegation = async () => (await api.get(id)).body;
  return { url, api, id, page, card, delegation };
}

async function open(url: string, expected?: RegExp): Promise<Page> {
  const { page } = await openTab(url, { movesClock: true, ...(expected && { expected }) });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  return page;
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("a person approves the proposed budget; the head and the events say what was used and who asked", async () => {
    const { page, card, id, delegation } = await setup();
    await showView(page, `#/live?open=${id}`);
    const head = page.locator(".summary");
    await head.getByText("More than its budget is used: 150 of 100 tokens, 1 attempt").waitFor();
    await page.getByText("The broker asks").waitFor();
    await showView(page, "#/live");
    await card.getByRole("button", { name: "Approve" }).click();
    await pass(page, 5);
    await until(async () => (await delegation()).budget.limit.tokens === 200);
    await showView(page, `#/live?open=${id}`);
    await head.getByText("Used with its parts: 150 of 200 tokens, 1 attempt").waitFor();
    await page.getByText("The broker asked").waitFor();
    await showView(page, `#/live?tab=timeline&open=${id}`);
    await page.getByText("the broker asked for a larger budget").waitFor();
  });

  test("a person edits the budget and approves", async () => {
    const { page, card, delegation } = await setup();
    await card.getByRole("button", { name: "Edit" }).click();
    const field = card.getByLabel("tokens");
    expect(await field.inputValue()).toBe("200");
    await field.fill("120");
    await card.getByRole("button", { name: "Approve" }).click();
    expect((await delegation()).state).toBe("input_required");
    await field.fill("500");
    await card.getByRole("button", { name: "Approve with 1 change" }).click();
    await pass(page, 5);
    await until(async () => (await delegation()).budget.limit.tokens === 500);
  });

  test("a person denies it, which ends the work", async () => {
    const { page, card, id, delegation } = await setup();
    await card.getByRole("button", { name: "Deny" }).click();
    await pass(page, 5);
    await until(async () => (await delegation()).error?.code === "budget_exceeded");
    await showView(page, `#/live?open=${id}`);
    const why = page.getByRole("region", { name: "Why it failed" });
    await why.getByText("budget_exceeded").waitFor();
  });

  test("an operator sees and changes the budgets of an agent, and sees those of a token", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("lead", { budgets: { day: { tokens: 2_000_000 } } });
    await api.call("POST", "/v1/tokens", {
      principal: "caller:ann",
      budgets: { month: { cost: 20, currency: "USD" } },
    });
    const page = await open(url);
    await showView(page, "#/agents?part=tokens");
    await page.locator(".token", { hasText: "ann" }).getByText("budget: month 20 USD").waitFor();
    await showView(page, "#/agents?name=lead");
    await page.getByText("Its budget: day 2,000,000 tokens.").waitFor();
    const field = (name: string) => page.getByLabel(name, { exact: true });
    await field("Budget a month: cost").fill("50");
    await page.getByRole("button", { name: "Save" }).click();
    // Said at the field, before it is sent.
    await page.locator("[name=month_currency]:invalid:focus").waitFor();
    await field("Budget a month: currency").fill("usd");
    await field("Budget a day: tokens").fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Its budget: month 50 USD.").waitFor();
    const saved = (await api.call("GET", "/v1/agents/lead")).body.budgets;
    expect(saved).toEqual({ month: { cost: 50, currency: "USD" } });
  });

  test("an operator makes a token whose work has a budget, and that ends", async () => {
    const { url } = await startBroker();
    const page = await open(url);
    await showView(page, "#/agents?part=tokens");
    await page.getByLabel("Name").fill("ann");
    await page.getByText("When it ends, and what its work may use").click();
    await page.getByLabel("Ends after, in days").fill("30");
    await page.getByLabel("Budget a day: tokens").fill("500");
    await page.getByLabel("Budget a month: cost").fill("20.5");
    const make = page.getByRole("button", { name: "Create token" });
    await make.click();
    // Said at the field, before it is sent.
    await page.locator("[name=month_currency]:invalid:focus").waitFor();
    await page.getByLabel("Budget a month: currency").fill("usd");
    await make.click();
    await page.getByText("It is shown only now").waitFor();
    await page
      .locator(".token", { hasText: "ann" })
      .getByText("budget: day 500 tokens; month 20.5 USD")
      .waitFor();
    // The next one has none of it.
    await page.getByLabel("Name").fill("bob");
    await make.click();
    await page.locator(".token", { hasText: "bob" }).waitFor();
    const { tokens } = (await client(url).call("GET", "/v1/tokens")).body;
    const of = (principal: string) =>
      tokens.find((one: { principal: string }) => one.principal === principal);
    expect(of("caller:ann").budgets).toEqual({
      day: { tokens: 500 },
      month: { cost: 20.5, currency: "USD" },
    });
    const { created_at, expires_at } = of("caller:ann");
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(30 * 86_400_000);
    expect([of("caller:bob").budgets, of("caller:bob").expires_at]).toEqual([undefined, null]);
  });

  test("work is delegated with a budget, and again with the same", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const page = await open(url);
    await page.locator(".agent-row").first().waitFor();
    await showView(page, "#/delegate?target=scout");
    await page.getByLabel("Task").fill(TASK);
    await page.getByRole("button", { name: "More options" }).click();
    await page.getByLabel("Budget: tokens").fill("900");
    await page.getByLabel("Budget: cost").fill("2.5");
    await page.getByLabel("Budget: minutes").fill("90");
    await page.getByLabel("Budget: attempts").fill("7");
    await tick(page.getByLabel("Ask for more when it is used up"));
    await page.getByRole("button", { name: "Delegate", exact: true }).click();
    await page.locator("form.delegate [name=currency]:invalid:focus").waitFor();
    await page.getByLabel("Budget: currency").fill("eur");
    await page.getByRole("button", { name: "Delegate", exact: true }).click();
    await page.locator(".summary", { hasText: TASK }).waitFor();
    const budget = {
      limit: { tokens: 900, cost: 2.5, currency: "EUR", seconds: 5_400, attempts: 7 },
      on_budget: "ask",
    };
    const [{ id }] = (await api.call("GET", "/v1/delegations")).body.delegations;
    expect((await api.get(id)).body.budget).toMatchObject(budget);
    await api.cancel(id);
    await showView(page, `#/delegate?again=${id}`);
    expect(await page.getByLabel("Budget: minutes").inputValue()).toBe("90");
    await page.getByRole("button", { name: "Delegate", exact: true }).click();
    await until(async () => (await api.call("GET", "/v1/delegations")).body.delegations.length === 2);
    const all = (await api.call("GET", "/v1/delegations")).body.delegations;
    const again = all.find((one: { id: string }) => one.id !== id);
    expect((await api.get(again.id)).body.budget).toMatchObject(budget);
    // No fraction of a minute changes it.
    const half = (await api.delegate("scout", { budget: { seconds: 31 } })).body.id;
    await showView(page, `#/delegate?again=${half}`);
    await page.getByRole("button", { name: "Delegate", exact: true }).click();
    const of31 = async () =>
      (await api.call("GET", "/v1/delegations")).body.delegations.filter(
        (one: { budget?: { limit?: { seconds?: number } } }) => one.budget?.limit?.seconds === 31,
      );
    await until(async () => (await of31()).length === 2);
  });
});
