/** What became of the questions: the list of answers, its filters, and new answers while somebody reads. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

interface Asked {
  readonly id: string;
  readonly interrupt_id: string;
}

async function setup() {
  const broker = await startBroker();
  const api = client(broker.url);
  for (const name of ["scaler", "writer"]) await api.agent(name);
  const ann = await as(broker.url, "approver:ann");
  const ask = async (agent: string, task: string, question: Record<string, unknown>): Promise<Asked> => {
    const { id } = (await api.delegate(agent, { task })).body;
    const [{ lease_id }] = (await api.lease(agent)).body.leases;
    return { id, interrupt_id: (await api.interrupt(lease_id, question)).body.interrupt_id };
  };
  /** Answered work would be leased first, so it is canceled. */
  const answer = async (by: typeof api, { id, interrupt_id }: Asked, given: Record<string, unknown>) => {
    expect((await by.answer(id, interrupt_id, given)).status).toBe(200);
    await api.cancel(id);
  };
  return { ...broker, api, ann, ask, answer };
}

async function signIn(url: string): Promise<Page> {
  const { page } = await openTab(url, { viewport: { width: 1280, height: 800 } });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".needs h1").waitFor();
  return page;
}

const SCALE = {
  text: "Scale it?",
  action: { name: "scale", arguments: { replicas: 3, token: "t0" } },
  schema: { type: "object", properties: { token: { type: "string", writeOnly: true } } },
  edit: true,
};

describe.skipIf(SKIP)("in Chromium", () => {
  test("shows who answered what and how, what nobody answered, and what comes while the list is in use", async () => {
    const { url, api, ann, clock, gateway, ask, answer } = await setup();
    const page = await signIn(url);
    await page.getByRole("link", { name: "Answered" }).click();
    await page.getByRole("heading", { name: "Nothing answered yet" }).waitFor();
    const rows = page.locator(".settled");

    const edit = await ask("scaler", "Get ready for the sale", SCALE);
    const data = { replicas: 5, token: "t1-canary" };
    await answer(ann, edit, { decision: "approve", text: "for the weekend", data });
    await until(async () => (await rows.count()) === 1);
    const text = (await rows.first().textContent()) ?? "";
    expect(text).toMatch(/^approver ann approved scale with 2 changes/);
    for (const part of ["operator → scaler", "Get ready for the sale", "by the API or CLI", "Scale it?"])
      expect(text).toContain(part);
    expect(text).toContain("for the weekendreplicas 3 → 5token changed, not shown");
    expect(await page.content()).not.toContain("canary");

    await ask("writer", "Write it", { text: "What tone?", expires_in_seconds: 10 });
    clock.offset_ms = 11_000;
    await gateway.sweep.tick();
    await until(async () => (await rows.count()) === 2);
    expect(await rows.first().textContent()).toMatch(
      /^Nobody answered in time\. Nobody was notified\..*What tone\?$/,
    );

    // A row that somebody points at does not move.
    await rows.first().hover();
    await answer(api, await ask("writer", "Write more", { text: "How long?" }), { text: "one page" });
    const news = page.getByRole("button", { name: "1 new" });
    await news.waitFor();
    expect(await rows.first().textContent()).toContain("What tone?");
    await news.click();
    await until(async () => (await rows.first().textContent())?.includes("one page"));

    await page.getByLabel("Who answered").selectOption("approver:ann");
    await until(async () => (await rows.count()) === 1);
    expect(page.url()).toContain("by=approver%3Aann");
    await page.getByLabel("Who answered").selectOption("");
    await page.getByLabel("What").selectOption("expired");
    await until(
      async () => (await rows.allTextContents()).map((one) => one.slice(-10)).join() === "What tone?",
    );
    await showView(page, "#/answered?agent=scaler&what=denied");
    await page.getByText("No answer fits.").waitFor();
    await showView(page, "#/answered?agent=scaler");
    await rows.first().getByRole("link").click();
    await page.locator(".open-column").getByText("Get ready for the sale").first().waitFor();
    expect(page.url()).toContain(`open=${edit.id}`);
  });

  test("reads older answers on request, below those that are shown", async () => {
    const { url, api, ask, answer } = await setup();
    await answer(api, await ask("writer", "The first", { text: "First?" }), { text: "yes" });
    await Promise.all(Array.from({ length: 53 }, () => api.delegate("scaler")));
    for (const max of [32, 21]) {
      const { leases } = (await api.lease("scaler", { max })).body;
      await Promise.all(
        leases.map(
          async ({ lease_id, delegation: { id } }: { lease_id: string; delegation: { id: string } }) => {
            const { interrupt_id } = (await api.interrupt(lease_id, { text: "And?" })).body;
            await api.answer(id, interrupt_id, { text: "yes", decision: "approve" });
          },
        ),
      );
      for (const { delegation } of leases) await api.cancel(delegation.id);
    }
    await answer(api, await ask("writer", "The last", { text: "Last?" }), { text: "yes" });
    const page = await signIn(url);
    await showView(page, "#/answered");
    const rows = page.locator(".settled");
    await until(async () => (await rows.count()) === 50);
    await page.getByRole("button", { name: "Older ones" }).click();
    await until(async () => (await rows.count()) === 55);
    expect(await rows.first().textContent()).toContain("The last");
    expect(await rows.last().textContent()).toContain("The first");
    expect(await page.getByRole("button", { name: "Older ones" }).count()).toBe(0);
  });
});
