/** Questions that need the approvals of several people. Needs a build. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, stopClock } from "../support/browser.ts";
import { until } from "../support/until.ts";

const REFUSED = /Failed to load resource/;
const APPROVE = { decision: "approve" };
const deploy = (more: Record<string, unknown> = {}) => ({
  ...{
    kind: "input",
    text: "Deploy it?",
    action: { name: "deploy", arguments: { version: "1.2", to: "prod" } },
  },
  ...{ edit: true, expires_in_seconds: 3_000, ...more },
});
const STAGING = { version: "1.2", to: "staging" };

async function setup(votes: Record<string, unknown> = { needed: 2 }) {
  const { url } = await startBroker();
  const api = client(url);
  await api.agent("scout", { votes });
  const [ann, bob] = [await as(url, "approver:ann"), await as(url, "approver:bob")];
  const ask = async (task: string, question = deploy(), by = api) => {
    const { id } = (await by.delegate("scout", { task })).body;
    const [{ lease_id }] = (await api.lease("scout")).body.leases;
    const { body } = await api.interrupt(lease_id, question);
    return { id: String(id), interrupt_id: String(body.interrupt_id) };
  };
  const votesOf = async (id: string) => (await api.get(id)).body.interrupt?.votes;
  return { url, api, ann, bob, ask, votesOf };
}

async function open(url: string, token: string, options: BrowserContextOptions = {}): Promise<Page> {
  const { page } = await openTab(url, { movesClock: true, expected: REFUSED, ...options });
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".needs .request").first().waitFor();
  await pass(page, 1);
  return page;
}

const PHONE = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
const badge = (page: Page) => page.locator("#needs-title .badge");

describe.skipIf(SKIP)("in Chromium", () => {
  test("after my vote it waits for others, below what needs me; others' changes bring it back, and I approve exactly them", async () => {
    const { url, api, ann, bob, ask, votesOf } = await setup();
    const { id, interrupt_id } = await ask("Release one");
    await ask("Release two", deploy({ text: "And two?", expires_in_seconds: 4_000 }));
    await bob.answer(id, interrupt_id, APPROVE);
    const page = await open(url, ann.token);
    await showView(page, "#/needs");
    const detail = page.locator(".inbox-detail .question");
    const rows = page.locator(".ask-row");
    await detail.getByText("Needs 2 approvals. bob approved").waitFor();
    await until(async () => (await page.title()) === "(2) Errand");
    expect(await rows.first().textContent()).toContain("1 of 2");
    // An edit of bob's, which voids his vote for the original, is seen before it is approved.
    await bob.answer(id, interrupt_id, { ...APPROVE, data: STAGING });
    await detail.getByText("Changed by bob, from what was proposed:").waitFor();
    expect(await detail.locator(".changes").textContent()).toContain("prod → staging");
    await detail
      .getByRole("button", { name: "Approve as proposed, which voids the approval of bob" })
      .waitFor();
    await pass(page, 1);
    await detail.getByRole("button", { name: "Deny" }).click();
    await detail.getByRole("button", { name: "Undo" }).click();
    const { id: other, interrupt_id: third } = await ask("Release three", deploy({ text: "Three?" }));
    await rows.filter({ hasText: "Three?" }).click();
    await detail.getByText("Release three").first().waitFor();
    await pass(page, 1);
    await detail.getByRole("button", { name: "Approve" }).click();
    await pass(page, 5);
    await detail.getByText("You approved. 1 more is needed.").waitFor();
    expect(await detail.locator(".buttons button").allTextContents()).toEqual(["Deny ", "Edit"]);
    await until(async () => (await page.title()) === "(2) Errand");
    expect(await badge(page).textContent()).toBe("2");
    await page.mouse.move(640, 10);
    await page.locator("#needs-title").focus();
    await until(
      async () => (await rows.last().textContent())?.includes("You approved. 1 more is needed") === true,
    );
    await bob.answer(other, third, { ...APPROVE, data: STAGING });
    await detail.getByText("New: your approval is void, because bob approved something else.").waitFor();
    await until(async () => (await page.title()) === "(3) Errand");
    await pass(page, 1);
    await detail.getByRole("button", { name: "Approve as changed by bob" }).click();
    await detail.getByText("Approved as changed by bob, not sent yet.").waitFor();
    await pass(page, 5);
    await until(async () => (await votesOf(other)) === undefined);
    const { events } = (await api.events(other)).body;
    expect(events.find(({ status }: { status?: string }) => status === "answered")).toMatchObject({
      votes: [{ by: "approver:bob" }, { by: "approver:ann", via: "console" }],
    });
    const [lease] = (await api.lease("scout")).body.leases;
    expect(JSON.stringify(lease.delegation.history.at(-1))).toContain('"to":"staging"');
  });

  test("what others approve while my approval waits, or just before I press, is not approved unseen", async () => {
    const { url, ann, bob, ask, votesOf } = await setup({ needed: 3 });
    const { id, interrupt_id } = await ask("Release one");
    const page = await open(url, ann.token);
    const card = page.locator(".needs .question");
    // The approval waits for a few seconds, and what has changed counts as seen after less than one.
    await stopClock(page);
    const shows = (text: string) =>
      until(async () => {
        await page.clock.runFor(20);
        return card.getByText(text).first().isVisible();
      });
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByText("Approved, not sent yet.").waitFor();
    await bob.answer(id, interrupt_id, { ...APPROVE, data: STAGING });
    await shows("Changed by bob, from");
    await pass(page, 5);
    await card
      .getByText("Not sent: bob approved something else meanwhile. Look again, then decide.")
      .waitFor();
    expect(await votesOf(id)).toMatchObject({ given: [{ by: "approver:bob" }] });
    // By the key, right after a change.
    await card.focus();
    await bob.answer(id, interrupt_id, { ...APPROVE, data: { version: "1.3", to: "prod" } });
    await shows("1.3");
    await page.keyboard.press("a");
    await card.getByText("bob has just approved something else. Look again, then press.").waitFor();
    expect(await card.getByRole("button", { name: "Undo" }).count()).toBe(0);
    await pass(page, 1);
    await page.keyboard.press("a");
    await card.getByText("Approved as changed by bob, not sent yet.").waitFor();
  });

  test("an edit of mine, and the original, say whose approvals they void; an approval that does not count says why", async () => {
    const { url, api, ann, bob, ask, votesOf } = await setup({ needed: 3, not_by_delegator: true });
    const alice = await as(url, "caller:alice");
    const { id, interrupt_id } = await ask("Release one", deploy(), alice);
    await bob.answer(id, interrupt_id, APPROVE);
    const page = await open(url, ann.token, PHONE);
    await showView(page, "#/needs");
    const card = page.locator(".needs .question");
    await card.getByRole("button", { name: "Edit" }).click();
    await card.getByLabel("to", { exact: true }).fill("test");
    await card.getByText("It voids the approval so far: bob.").waitFor();
    await card.getByRole("button", { name: "Approve with 1 change" }).click();
    await pass(page, 5);
    await card.getByText("You approved. 2 more are needed.").waitFor();
    expect(await votesOf(id)).toMatchObject({ given: [{ by: "approver:ann" }] });
    await until(async () => (await badge(page).count()) === 0);
    // In the head of the delegation as well.
    await showView(page, `#/?open=${id}`);
    await page.getByText("You approved, and others must, too").waitFor();

    const own = await open(url, alice.token);
    const mine = own.locator(".needs .question");
    await mine
      .getByText("Only Deny is yours: somebody else than the delegator must approve it. Needs 3 approvals.")
      .waitFor();
    expect(await own.title()).toBe("Errand");
    expect(await mine.locator(".buttons button").allTextContents()).toEqual(["Deny "]);
    expect(await mine.getByRole("button", { name: /approve|for 20 min/i }).count()).toBe(0);
    await mine.getByRole("button", { name: /^Deny/ }).click();
    await pass(own, 5);
    await until(async () => (await api.get(id)).body.state === "submitted");
  });

  test("whose approval does not count is not needed, and can only deny, until the escalation", async () => {
    const { url, api, ann, ask, votesOf } = await setup({
      ...{ needed: 2, by: ["approver:bob", "caller:*"] },
      ...{ escalate_seconds: 600, escalate_to: ["approver:ann"] },
    });
    const { id } = await ask("Release one");
    await ask("Release two", deploy({ expires_in_seconds: 3_100 }));
    await api.call("PUT", "/v1/agents/plain", {});
    const free = (await api.delegate("plain", { task: "Release three" })).body.id;
    const [{ lease_id }] = (await api.lease("plain")).body.leases;
    await api.interrupt(lease_id, deploy({ text: "And three?", expires_in_seconds: 4_000 }));
    const page = await open(url, ann.token);
    await showView(page, "#/needs");
    const rows = page.locator(".ask-row");
    await until(async () => (await page.title()) === "(1) Errand");
    // What needs the reader is first, although it expires last; equal ones are not decided together.
    await until(async () => (await rows.allTextContents())[0]?.includes("And three?") === true);
    expect(await rows.count()).toBe(3);
    expect(await rows.nth(1).textContent()).toContain("Others must approve: Deploy it?");
    await rows.nth(1).click();
    const detail = page.locator(".inbox-detail .question");
    await detail
      .getByText(/^Only Deny is yours: your approval counts in \d+ min\. Needs 2 approvals/)
      .waitFor();
    await pass(page, 1);
    expect(await detail.locator(".buttons button").allTextContents()).toEqual(["Deny "]);
    expect(await detail.getByRole("button", { name: "Yes, for 20 min" }).count()).toBe(0);
    await page.keyboard.press("a");
    await detail.getByText("You can only deny it (d).").waitFor();
    await showView(page, `#/?open=${id}`);
    await page.getByText("Others must approve; you may deny").waitFor();
    await showView(page, "#/needs");
    await pass(page, 601);
    await until(async () => (await page.title()) === "(3) Errand");
    await page.getByRole("button", { name: "1 new question" }).click();
    await rows.filter({ hasText: "× 2" }).click();
    await detail.getByRole("button", { name: "Approve" }).waitFor();

    const operator = await open(url, OPERATOR);
    await showView(operator, `#/?open=${id}`);
    const own = operator.locator(".open-part");
    await own
      .getByText("Only Deny is yours: it needs the approval of approver:bob, caller:*. Needs 2")
      .first()
      .waitFor();
    await own.getByRole("button", { name: /^Deny/ }).click();
    await pass(operator, 5);
    await until(async () => (await votesOf(id)) === undefined);
    expect((await api.get(free)).body.state).toBe("input_required");
  });

  test("where nothing can be denied, nothing says so", async () => {
    const { url, ann, ask } = await setup({ needed: 2, by: ["approver:bob"] });
    const question = { kind: "input", text: "Where?", options: ["approve", "staging"], action: undefined };
    const { id } = await ask("Release one", { ...question, edit: undefined } as never);
    const page = await open(url, ann.token);
    const card = page.locator(".needs .question");
    await card.getByText("Not yours to answer: it needs the approval of approver:bob.").waitFor();
    expect(await card.locator(".buttons button").count()).toBe(0);
    await showView(page, `#/?open=${id}`);
    await page.getByText(/^Others must approve, /).waitFor();
  });

  test("the operator sets whose approvals count; the timeline, the conversation and Answered name everybody", async () => {
    const { url, api, ann, bob, ask } = await setup({ needed: 2, remind_seconds: 600 });
    const { id, interrupt_id } = await ask("Release one");
    await ask("Release two");
    await ann.answer(id, interrupt_id, { ...APPROVE, data: STAGING });
    await bob.answer(id, interrupt_id, APPROVE);
    await ann.answer(id, interrupt_id, { ...APPROVE, text: "fine by me" });
    const page = await open(url, OPERATOR);
    await showView(page, "#/agents?name=scout");
    await page.getByText("Its questions need 2 approvals, reminded every 10 min.").waitFor();
    const save = page.getByRole("button", { name: "Save" });
    // What is not edited stays.
    await save.click();
    await page.getByText("Nothing changed.").waitFor();
    await page.getByLabel("Approvals that a question needs").fill("3");
    await page.getByLabel("Whose approvals count").fill("approver:*");
    await page.getByLabel("The delegator's own approval").selectOption("not");
    await page.getByLabel("Others may approve, too, after").fill("90");
    await page.getByLabel("These others").fill("operator");
    await save.click();
    await page.getByText("Changed: votes.").waitFor();
    expect((await api.call("GET", "/v1/agents/scout")).body.votes).toEqual({
      ...{ needed: 3, by: ["approver:*"], not_by_delegator: true, remind_seconds: 600 },
      ...{ escalate_seconds: 5400, escalate_to: ["operator"] },
    });
    await page.getByText("3 approvals, of approver:*, not of the delegator").waitFor();
    await page.getByLabel("Approvals that a question needs").fill("1");
    for (const name of ["Whose approvals count", "These others", "Others may approve, too, after"])
      await page.getByLabel(name).fill("");
    await page.getByLabel("Who has not approved is notified again every").fill("");
    await page.getByLabel("The delegator's own approval").selectOption("");
    await save.click();
    await until(async () => (await api.call("GET", "/v1/agents/scout")).body.votes === null);

    await showView(page, "#/answered");
    const row = page.locator(".settled-head");
    expect(await row.textContent()).toContain("approver bob, approver ann approved deploy");
    await showView(page, `#/?open=${id}`);
    const talk = page.locator(".conversation");
    await talk.getByText("fine by me").waitFor();
    const voters = async () =>
      (await talk.locator(".author").allTextContents())
        .filter((one) => one.includes("as one of several"))
        .map((one) => one.split(" approved")[0]);
    await expect.poll(voters).toEqual(["approver ann", "approver bob", "approver ann"]);
    await showView(page, `#/?open=${id}&tab=timeline`);
    const list = page.locator(".open-part");
    await expect
      .poll(() => list.textContent())
      .toContain(
        "approved, and others must, too · by approver bob · 1 of 2 approvals · void: the approval of approver ann",
      );
    await expect.poll(() => list.textContent()).toContain("approved by approver bob, approver ann");
    // Others than the operator read it.
    const mine = await open(url, ann.token);
    await api.call("PATCH", "/v1/agents/scout", { votes: { needed: 2 } });
    await showView(mine, "#/agents?name=scout");
    await mine.getByText("Its questions need 2 approvals.").waitFor();
    expect(await mine.getByLabel("Approvals that a question needs").count()).toBe(0);
  });

  test("a secret that others answered is not shown", async () => {
    const { url, ann, bob, ask } = await setup();
    const schema = {
      type: "object",
      properties: { user: { type: "string" }, key: { type: "string", format: "password" } },
    };
    const asks = { kind: "input", options: ["approve", "deny"], schema };
    const members = await ask("Members", { text: "Which account?", ...asks } as never);
    const whole = { type: "string", writeOnly: true };
    const value = await ask("Value", { text: "Which key?", ...asks, schema: whole } as never);
    await bob.answer(members.id, members.interrupt_id, { data: { user: "ops", key: "hunter2" } });
    await bob.answer(value.id, value.interrupt_id, { data: "hunter3" });
    const page = await open(url, ann.token);
    const needs = page.locator(".needs");
    await until(async () => (await needs.getByText("Any other answer voids that").count()) === 2);
    const text = (await needs.textContent()) ?? "";
    expect(text).toContain('bob chose “{"user":"ops","key":"••••••"}”');
    expect(text).toContain("bob chose “••••••”");
    expect(text).not.toContain("hunter");
  });

  test("equal questions are approved together as others changed them, and each then waits for one more", async () => {
    const { url, ann, bob, ask, votesOf } = await setup({ needed: 3 });
    const asked = [await ask("Release one"), await ask("Release two"), await ask("Release three")];
    for (const { id, interrupt_id } of asked.slice(0, 2))
      await bob.answer(id, interrupt_id, { ...APPROVE, data: STAGING });
    const page = await open(url, ann.token);
    await showView(page, "#/needs");
    await page.locator(".ask-row", { hasText: "× 2" }).click();
    await pass(page, 1);
    const equal = page.locator(".equal");
    await equal.getByRole("button", { name: "Approve all 2, as changed" }).click();
    await pass(page, 5);
    await until(async () => (await equal.getByText("You approved. 1 more is needed").count()) === 2);
    for (const { id } of asked.slice(0, 2)) {
      const votes = await votesOf(id);
      expect(votes.given).toMatchObject([{ by: "approver:bob" }, { by: "approver:ann" }]);
      expect(JSON.stringify(votes.answers)).toContain('"to":"staging"');
    }
    expect(await votesOf(asked[2]?.id ?? "")).toMatchObject({ given: [] });
  });
});
