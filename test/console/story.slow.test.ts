/** The console in a browser, with a real gateway: one delegation from its beginning to its end. Needs a build. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, freshDb, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, stopClock, tick } from "../support/browser.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

/** What a browser says of a broker that is away for a moment, or of a request that is refused. */
const LOST = /Failed to load resource|net::ERR_/;

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
}

const rowOf = (page: Page, text: string) => page.locator(".row", { hasText: text });

describe.skipIf(SKIP)("in Chromium", () => {
  test("delegate, watch, be asked, approve by keyboard, see it complete; reload and restart in between", async () => {
    const db = await freshDb();
    const first = await startGatewayProcess(db);
    const { url } = first;
    const api = client(url);
    for (const name of ["coder", "planner"]) await api.agent(name);
    // A part ends by its parent's deadline at the latest.
    const deadline = "2999-06-01T00:00:00Z";
    const parent = (await api.delegate("planner", { task: "Plan the week", deadline })).body.id;
    const { page } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    await page.getByRole("link", { name: "Delegate" }).click();
    const agent = page.getByLabel("Agent", { exact: true });
    // An example that cannot be taken for a value.
    await until(async () => (await agent.getAttribute("placeholder")) === "for example coder");
    // The first field has the focus.
    await until(() => agent.evaluate((field) => field === document.activeElement));
    await agent.fill("coder");
    await page.getByLabel("Task").fill("Fix the login test");
    const file = { name: "log.txt", mimeType: "text/plain", buffer: Buffer.from("Timeout after 5 s") };
    await page.getByLabel("Files").setInputFiles(file);
    await page.getByLabel("Priority").selectOption("9");
    await page.getByLabel("Deadline").fill("2999-01-01T12:00");
    await page.getByRole("button", { name: "More options" }).click();
    await page.getByLabel("A part of").fill(parent);
    await page.getByLabel("Approve in advance").fill("tests.run, fs.*");
    await page.getByLabel("Task").press("Control+Enter");
    // It opens beside the live view.
    const row = rowOf(page, "Fix the login test");
    await row.locator("text=queued").waitFor();
    await page.locator(".why", { hasText: "coder has no worker" }).waitFor();
    const id = new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get("open") ?? "";
    expect(id).toMatch(/^dlg_/);
    expect((await api.get(id)).body).toMatchObject({
      priority: 9,
      parent_id: parent,
      auto_approve: { actions: ["tests.run", "fs.*"] },
      deadline_at: expect.stringMatching(/^(?:2998-12-31|2999-01-0[12])T/),
      message: {
        parts: [
          { text: "Fix the login test" },
          { raw: file.buffer.toString("base64"), mediaType: "text/plain", filename: "log.txt" },
        ],
      },
    });

    const [{ lease_id: lease }] = (await api.lease("coder")).body.leases;
    await api.heartbeat(lease, { progress: { done: 5, total: 8, current_step: "testing" } });
    await row.locator("text=5/8 testing").waitFor();
    await (await as(url, "approver:ann")).message(id, "Also the docs");
    await page.reload();
    await row.locator("text=5/8 testing").waitFor();
    // The agents are read again from time to time.
    await pass(page, 10);
    await page.getByRole("link", { name: /^coder: .*1 working/ }).waitFor();

    const { port } = first;
    await first.kill();
    // Only a loss that lasts is worth a word.
    await until(async () => {
      await pass(page, 1);
      return page.locator("text=Reconnecting").isVisible();
    });
    await startGatewayProcess(db, { port });
    await until(async () => {
      await pass(page, 1);
      return (await page.locator(".reconnecting").count()) === 0;
    });

    await api.interrupt(lease, { text: "Push the fix?", request_id: "push", options: ["approve", "deny"] });
    const question = page.locator(".needs .question").first();
    await question.locator("text=Push the fix?").waitFor();
    await question.locator(".time-left", { hasText: /\d+ \w+ left to answer/ }).waitFor();
    // What the reader is asked is no row of the view.
    await page.getByRole("link", { name: "1 asks: see Needs you" }).waitFor();
    expect(await row.count()).toBe(0);
    await question.locator("header", { hasText: "coder for you" }).waitFor();
    await until(async () => (await page.title()) === "(1) Errand");
    // The icon has the count, too.
    await until(async () => (await page.locator("link[rel=icon]").getAttribute("href"))?.startsWith("blob:"));
    await api.agent("scout");
    await api.delegate("scout", { task: "Clean up" });
    const [{ lease_id: other }] = (await api.lease("scout")).body.leases;
    await api.interrupt(other, { text: "Delete the branch?", options: ["approve", "deny"] });
    const next = page.locator(".needs .question", { hasText: "Delete the branch?" });
    await next.waitFor();
    await page.keyboard.press("Escape");
    await until(() => question.evaluate((card) => card === document.activeElement));
    await page.locator(".agent-row").first().focus();
    // The first key focuses the question, and decides nothing.
    await page.keyboard.press("a");
    expect(await question.locator("text=Undo").count()).toBe(0);
    await page.keyboard.up("a");
    await stopClock(page);
    await page.keyboard.down("a");
    await question.locator("text=Approved, not sent yet").waitFor();
    expect((await api.get(id)).body.state).toBe("input_required");
    await pass(page, 10);
    await until(async () => (await api.get(id)).body.state === "submitted");
    // The outcome takes its place and keeps the focus: no key that comes late decides the next question.
    const over = page.locator(".needs .question.over", { hasText: "Approved" });
    await until(async () => {
      await page.clock.runFor(50);
      return (await over.count()) === 1 && over.evaluate((card) => card === document.activeElement);
    });
    expect(await over.evaluate((card) => getComputedStyle(card).outlineStyle)).toBe("solid");
    await page.keyboard.press("d");
    await page.keyboard.press("j");
    await page.keyboard.down("a");
    await page.keyboard.up("a");
    await page.clock.runFor(100);
    // Neither does a key that was held down.
    expect(await next.locator("text=Undo").count()).toBe(0);
    await page.clock.resume();
    await page.keyboard.press("d");
    await next.locator("text=Denied, not sent yet").waitFor();
    await pass(page, 4);

    const [again] = (await api.lease("coder")).body.leases;
    expect(again.delegation.history.at(-1).metadata).toMatchObject({ decision: "approve", by: "operator" });
    await api.reply(again.lease_id, { text: "Pushed." });
    await row.locator("text=completed").waitFor();
    await until(async () => (await page.title()) === "Errand");
    await row.click();
    await page.locator(".reply", { hasText: "Pushed." }).waitFor();
    // Its first attempt is nothing to speak of.
    expect(await page.locator(".summary").textContent()).not.toContain("attempt");
    const [reply] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download reply" }).click(),
    ]);
    expect(reply.suggestedFilename()).toBe(`reply-${id.slice(-8)}.txt`);
    expect(await readFile(await reply.path(), "utf8")).toBe("Pushed.");
    await page.getByRole("button", { name: "Copy reply" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await page.locator(".conversation", { hasText: "approved" }).waitFor();
    await page.locator(".conversation", { hasText: "approver ann added" }).waitFor();

    // On a phone nothing is outside the screen, or cut.
    await page.setViewportSize({ width: 360, height: 844 });
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.locator(".event", { hasText: "by approver ann" }).waitFor();
    const { x = 0, width = 0 } = (await page.locator(".tabs a").last().boundingBox()) ?? {};
    expect([x > 0, x + width <= 360]).toEqual([true, true]);
    const cut = await page
      .locator(".event-what")
      .evaluateAll((all) =>
        all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent),
      );
    expect(cut).toEqual([]);
    // What ended leaves the live view after a while.
    expect(await row.count()).toBe(1);
    await pass(page, 20);
    await until(async () => (await row.count()) === 0);
    // The longest story: a minute on a busy machine, where others end in seconds.
  }, 240_000);

  test("an answer can be taken back; pages of two gateways agree; the other page says who answered", async () => {
    const { url, another } = await startBroker();
    const second = await another();
    const api = client(url);
    const [ann, ben] = await Promise.all([as(url, "approver:ann"), as(url, "approver:ben")]);
    await api.agent("deployer");
    const { body } = await api.delegate("deployer", { task: "Deploy it" });
    const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
    await api.interrupt(lease, { text: "Now?", options: ["Now", "Tonight"] });
    const [one, two] = await Promise.all([openTab(url, { movesClock: true }), openTab(second.url)]);
    await Promise.all([signIn(one.page, ann.token), signIn(two.page, ben.token)]);
    // Approvers do not delegate.
    expect(await one.page.getByRole("link", { name: "Delegate" }).count()).toBe(0);
    await one.page.getByRole("button", { name: "Now", exact: true }).click();
    await one.page.getByRole("button", { name: "Undo" }).click();
    await stopClock(one.page);
    await one.page.getByRole("button", { name: "Tonight" }).click();
    const waiting = one.page.locator(".needs .answered");
    await waiting.locator("text=4 s left").waitFor();
    await one.page.clock.runFor(1_100);
    await waiting.locator("text=3 s left").waitFor();
    await one.page.clock.resume();
    await pass(one.page, 3);
    await one.page.locator(".question", { hasText: "Answered “Tonight”" }).waitFor();
    await two.page.locator(".question.over", { hasText: "approver ann answered this" }).waitFor();
    expect((await api.get(body.id)).body.history.at(-1)).toMatchObject({
      parts: [{ text: "Tonight" }],
      metadata: { by: "approver:ann" },
    });
    await rowOf(two.page, "Deploy it").locator("text=queued").waitFor();
  });

  test("a proposed action is shown, edited in place and approved", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("deployer");
    const { body } = await api.delegate("deployer", { task: "Deploy it" });
    const [{ lease_id: lease }] = (await api.lease("deployer")).body.leases;
    const action = { name: "fs.delete", arguments: { path: "/tmp/old", force: false } };
    // Choices that an agent names itself approve what was edited, too.
    const options = ["approve", "deny"];
    const schema = { properties: { path: { maxLength: 12 } } };
    await api.interrupt(lease, { text: "May I?", action, options, edit: true, schema });
    const { page } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    const card = page.locator(".needs .question");
    await card.locator(".proposal", { hasText: "fs.delete" }).waitFor();
    await card.locator(".members", { hasText: "/tmp/old" }).waitFor();
    await card.getByRole("button", { name: "Edit" }).click();
    await card.getByRole("button", { name: "As JSON" }).click();
    const editor = card.getByLabel("Arguments of fs.delete");
    await editor.fill("{ not JSON");
    await card
      .getByRole("alert")
      .getByText("Line 1, column 3: a name in double quotes is missing.", { exact: true })
      .waitFor();
    await card.locator(".json-line").waitFor();
    const tooLong = '{ "path": "/tmp/much/older", "force": false }';
    await editor.fill(tooLong);
    await card.getByRole("button", { name: "Approve" }).click();
    // Refused at once, and the edit is kept, so nothing else can be approved by mistake.
    await card.locator("text=The answer does not fit the question: path: ").waitFor();
    expect(await card.getByRole("button", { name: "Undo" }).count()).toBe(0);
    expect(await editor.inputValue()).toBe(tooLong);
    await editor.fill('{ "path": "/tmp/older", "force": false }');
    await card.getByText("Comment…").click();
    await card.getByLabel("Comment for the agent").fill("Only this once");
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByRole("button", { name: "Undo" }).waitFor();
    await pass(page, 4);
    await until(async () => (await api.get(body.id)).body.state === "submitted");
    expect((await api.get(body.id)).body.history.at(-1)).toMatchObject({
      parts: [{ text: "Only this once" }, { data: { path: "/tmp/older", force: false } }],
      metadata: { decision: "approve" },
    });
  });

  test("an agent is created, paused, changed and deleted; a token is made and revoked", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const { page } = await openTab(url);
    await signIn(page, OPERATOR);
    await page.getByRole("link", { name: "Agents" }).click();
    await page.getByLabel("New agent").fill("scout");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "scout" }).waitFor();
    await api.call("PATCH", "/v1/agents/scout", { limits: { lease_seconds: 90 } });
    await page.getByLabel("In progress at once").fill("2");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator("text=Changed: limits.max_working").waitFor();
    // Only what was edited is sent: the other client's change stays.
    expect((await api.call("GET", "/v1/agents/scout")).body.limits).toMatchObject({
      max_working: 2,
      lease_seconds: 90,
    });
    // Durations have people's units.
    await page.locator("input[name=interrupt_ttl_seconds]").fill("2");
    await page.getByLabel("A question stays open for: unit").selectOption("hours");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator("text=Changed: limits.interrupt_ttl_seconds").waitFor();
    expect((await api.call("GET", "/v1/agents/scout")).body.limits.interrupt_ttl_seconds).toBe(7200);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    expect((await api.call("GET", "/v1/agents/scout")).body.paused).toBe(true);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await until(async () => (await api.call("GET", "/v1/agents/scout")).status === 404);

    await page.getByRole("link", { name: "Tokens" }).click();
    await page.getByLabel("Name").fill("alice");
    await page.getByRole("button", { name: "Create token" }).click();
    const secret = await page.locator(".secret code").textContent();
    expect(secret).toMatch(/^errand_/);
    expect((await client(url, secret).call("GET", "/v1/status")).body.principal).toBe("caller:alice");
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await until(async () => (await client(url, secret).call("GET", "/v1/status")).status === 401);
    await page.getByRole("link", { name: "Log" }).click();
    await page.locator(".log", { hasText: "revoked the token of caller:alice" }).waitFor();
    // Sign-ins are shown on request.
    expect(await page.locator(".log", { hasText: "signed in" }).count()).toBe(0);
    await page.getByLabel("What is shown").selectOption("sign-ins");
    await page.locator(".log", { hasText: "signed in" }).waitFor();
    expect(await page.locator(".log", { hasText: "revoked" }).count()).toBe(0);
  });

  test("a search is its URL; a form answers a schema; redrive, cancel and erase", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("coder");
    const failing = (await api.delegate("coder", { task: "Fails", max_attempts: 1 })).body.id;
    const [{ lease_id: lease }] = (await api.lease("coder")).body.leases;
    await api.reply(lease, { state: "failed", error: { code: "disk_full", message: "No space left" } });
    const asking = (await api.delegate("coder", { task: "Asks" })).body.id;
    const [{ lease_id: second }] = (await api.lease("coder")).body.leases;
    const schema = {
      type: "object",
      properties: {
        branch: { type: "string" },
        depth: { type: "integer", maximum: 9, multipleOf: 5 },
        fast: { type: "boolean" },
        mode: { enum: ["quick", "thorough"] },
      },
      required: ["branch", "mode"],
    };
    await api.interrupt(second, { text: "Where?", schema });
    const { page } = await openTab(url, { movesClock: true });
    await signIn(page, OPERATOR);

    const card = page.locator(".question", { hasText: "Where?" });
    await card.getByLabel("branch").fill("main");
    await card.getByText("at most 9").waitFor();
    await card.getByLabel("depth").fill("10");
    await card.getByText("At most 9.", { exact: true }).waitFor();
    // No choice is made for the reader.
    expect(await card.getByLabel("mode").inputValue()).toBe("");
    await card.getByLabel("mode").selectOption("thorough");
    await card.getByRole("button", { name: "Answer" }).click();
    expect(await card.getByRole("button", { name: "Undo" }).count()).toBe(0);
    await card.getByLabel("depth").fill("4");
    await card.getByRole("button", { name: "Answer" }).click();
    await card.locator("text=The answer does not fit the question: depth: ").waitFor();
    await card.getByLabel("depth").fill("5");
    await tick(card.getByLabel("fast"));
    await card.getByRole("button", { name: "Answer" }).click();
    await card.getByRole("button", { name: "Undo" }).waitFor();
    await pass(page, 4);
    await until(async () => (await api.get(asking)).body.state === "submitted");
    // The outcome takes the place of the answer, and the focus is not lost with it.
    await until(() => page.evaluate("document.activeElement?.id === 'needs-title'"));
    expect((await api.get(asking)).body.history.at(-1).parts).toEqual([
      { data: { branch: "main", depth: 5, fast: true, mode: "thorough" } },
    ]);

    await showView(page, "#/charts?agent=coder");
    await page.getByRole("slider", { name: "Delegated: 2" }).waitFor();
    // Without waiting for the next sample.
    await page.getByRole("slider", { name: "Queue: highest: 1 queued" }).waitFor();
    await page.locator(".failures").getByRole("link", { name: "disk_full" }).click();
    await page.locator(".found", { hasText: "Fails" }).waitFor();
    await showView(page, "#/live");

    await page.keyboard.press("/");
    await page.getByLabel("Text of the task").fill("fail");
    await page.locator(".found", { hasText: "Fails" }).waitFor();
    await until(() => page.url().endsWith("#/find?q=fail"));
    // Another search replaces what was typed, and the key keeps it.
    await page.getByRole("link", { name: "Find" }).click();
    await until(async () => (await page.getByLabel("Text of the task").inputValue()) === "");
    await page.goBack();
    await until(async () => (await page.getByLabel("Text of the task").inputValue()) === "fail");
    await page.locator("h1:visible").first().click();
    await page.keyboard.press("/");
    expect(page.url()).toMatch(/#\/find\?q=fail$/);
    await page.getByRole("link", { name: "Failed since yesterday" }).click();
    await until(() => /#\/find\?state=failed&ended_since=\d{4}-/.test(page.url()));
    // The rows of the search before may still be there.
    await until(async () => {
      const [found = "", ...others] = await page.locator(".found").allTextContents();
      return found.includes("Fails") && others.length === 0;
    });
    await page
      .getByRole("list", { name: "Filters" })
      .getByRole("link", { name: /^Without: ended since / })
      .click();
    await until(() => page.url().endsWith("#/find?state=failed"));
    await page.goto("about:blank");
    await page.goto(`${url}/#/find?q=fail&state=failed`);
    const found = page.locator(".found", { hasText: /failed after .*: No space left/ });
    await found.getByTitle("disk_full").waitFor();
    await found.click();
    await page.locator(".ending", { hasText: "No space left" }).waitFor();
    // The advice to read that very message would be no help.
    expect(await page.locator(".delegation", { hasText: "error.message" }).count()).toBe(0);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".summary", { hasText: "Repeats" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByLabel("Reason").fill("not needed");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel delegation" }).click();
    await page.locator(".state.canceled").first().waitFor();
    const repeated = (await api.get(failing)).body.redriven_as;
    await page.goto(`${url}/#/find?open=${failing}`);
    await page.locator(".actions", { hasText: `Repeated as …${repeated.slice(-8)}` }).waitFor();
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    await page.locator(".tools-menu summary").click();
    await page.getByRole("button", { name: "Erase" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Erase for everybody" }).click();
    await until(async () => (await api.get(failing)).status === 404);
  });
});
