/** The head of a delegation in the console: the answer by its state, what can be done, and how wide it is. Needs a build. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { PIXEL } from "./scene.ts";

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
}

const widthOf = (page: Page, selector: string) =>
  page.locator(selector).evaluate((one) => Math.round(one.getBoundingClientRect().width));

describe.skipIf(SKIP)("in Chromium", () => {
  test("the head says what the state makes a reader ask, and offers what comes next", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (const name of ["scout", "coder"]) await api.agent(name);
    const take = async (task: Record<string, unknown>) => {
      const { id } = (await api.delegate("scout", task)).body;
      const [{ lease_id: lease }] = (await api.lease("scout", { lease_seconds: 900 })).body.leases;
      return { id, lease };
    };
    const { page, context } = await openTab(url);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await signIn(page);
    const open = (id: string) => showView(page, `#/live?open=${id}`);

    const failing = await take({ task: "Fails", max_attempts: 1 });
    await api.heartbeat(failing.lease, { progress: { done: 5, total: 8, current_step: "packing" } });
    const error = { code: "disk_full", message: "No space left on /var" };
    await api.reply(failing.lease, { state: "failed", text: "", error });
    await open(failing.id);
    const ending = page.getByRole("region", { name: "Why it failed" });
    await ending.getByText("No space left on /var").waitFor();
    await ending
      .getByText(/It was at 5\/8 packing\. The message is from \w+\. Try again .*disk_full$/)
      .waitFor();
    expect(await page.locator(".actions :is(button, a)").first().textContent()).toBe("Try again");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".parties", { hasText: `Repeats …${failing.id.slice(-8)}` }).waitFor();
    const repeated = (await api.get(failing.id)).body.redriven_as;
    await open(failing.id);
    await page.getByText(`Repeated as …${repeated.slice(-8)}`).waitFor();
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    await api.cancel(repeated, { reason: "not needed" });
    await open(repeated);
    await page.getByRole("region", { name: "How it ended" }).getByText("operator canceled it").waitFor();
    await page.getByRole("region", { name: "How it ended" }).getByText("not needed").waitFor();
    // No worker has started it.
    expect(await page.locator(".summary").textContent()).not.toContain("attempt");

    const parts = [{ text: "Look at this" }, { raw: PIXEL, mediaType: "image/png", filename: "pixel.png" }];
    const done = await take({ message: { parts }, priority: 7, auto_approve: { actions: ["fs.*"] } });
    await api.reply(done.lease, { text: "One pixel.\n- grün" });
    await open(done.id);
    const top = async (selector: string) => (await page.locator(selector).boundingBox())?.y ?? 0;
    expect(await top(".reply")).toBeLessThan(await top(".conversation"));
    await page.getByRole("button", { name: "Copy reply" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("One pixel.\n- grün");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download reply" }).click(),
    ]);
    expect(await readFile(await download.path(), "utf8")).toBe("One pixel.\n- grün");
    await page.getByRole("link", { name: "Delegate again" }).click();
    await page.getByText("With 1 part of the first task: pixel.png").waitFor();
    const form = page.locator("form.delegate");
    expect(await form.locator("[name=target]").inputValue()).toBe("scout");
    expect(await form.getByLabel("Approve in advance").inputValue()).toBe("fs.*");
    await form.locator("[name=target]").fill("coder");
    await form.getByRole("button", { name: "Delegate" }).click();
    await page.locator(".parties", { hasText: "priority 7" }).waitFor();
    const { delegations } = (await api.call("GET", "/v1/delegations?target=coder")).body;
    expect(delegations[0].message.parts).toEqual(parts);
    await page.locator(".why", { hasText: "coder has no worker" }).waitFor();
    const last = (await api.delegate("coder", { task: "Later" })).body.id;
    await open(last);
    await page.locator(".why", { hasText: "It is number 2 of 2 in the queue." }).waitFor();

    const asking = await take({ task: "Sign in somewhere" });
    const schema = {
      type: "object",
      properties: { user: { type: "string" }, password: { type: "string", format: "password" } },
    };
    const { body } = await api.interrupt(asking.lease, { text: "As whom?", schema });
    await open(asking.id);
    await page.locator(".why", { hasText: "You may answer" }).waitFor();
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.getByRole("button", { name: "Go to the question" }).click();
    await until(() =>
      page.evaluate("document.activeElement.getAttribute('aria-label') === 'The open question'"),
    );
    await api.answer(asking.id, body.interrupt_id, { data: { user: "ann", password: "hunter2" } });
    // The form hides it, and so does the conversation.
    const answer = page.locator(".said-block", { hasText: "operator answered" });
    await answer.getByText("ann").waitFor();
    await answer.getByText("••••••").waitFor();
    expect(await page.locator(".delegation").textContent()).not.toContain("hunter2");
  });

  test("it takes the whole page or as much as the reader likes, also after a reload", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const [first, second] = [
      (await api.delegate("scout", { task: "First" })).body.id,
      (await api.delegate("scout", { task: "Second" })).body.id,
    ];
    const { page, context } = await openTab(url);
    await signIn(page);
    await showView(page, `#/live?open=${first}`);
    const edge = page.getByRole("separator", { name: "Width of the delegation" });
    const before = await widthOf(page, ".open-part");
    await edge.hover();
    await page.mouse.down();
    await page.mouse.move(760, 400);
    await page.mouse.up();
    await until(async () => (await widthOf(page, ".open-part")) === 1280 - 760);
    expect(await edge.getAttribute("aria-valuenow")).toBe("520");
    await page.keyboard.press("ArrowRight");
    await until(async () => (await edge.getAttribute("aria-valuenow")) === "488");
    // The view keeps its least width.
    await page.keyboard.press("End");
    const most = await edge.getAttribute("aria-valuemax");
    await until(async () => (await edge.getAttribute("aria-valuenow")) === most);
    expect(await widthOf(page, "#view")).toBe(380);
    await page.keyboard.press("Home");
    await until(async () => (await widthOf(page, ".open-part")) === 360);
    await page.reload();
    await page.locator(".summary").waitFor();
    expect(await widthOf(page, ".open-part")).toBe(360);
    await edge.dblclick();
    await until(async () => (await widthOf(page, ".open-part")) === before);

    await page.keyboard.press("w");
    await until(async () => (await widthOf(page, ".open-part")) === 1280);
    expect(await page.locator("#view, .needs-column, .pane-edge").filter({ visible: true }).count()).toBe(0);
    await page.reload();
    await page.locator(".summary", { hasText: "First" }).waitFor();
    expect(await widthOf(page, ".open-part")).toBe(1280);
    // The next one is opened like it.
    await page.keyboard.press("Escape");
    await page.locator("main .row", { hasText: "Second" }).click();
    await page.locator(".summary", { hasText: "Second" }).waitFor();
    expect(await widthOf(page, ".open-part")).toBe(1280);
    await page.getByRole("button", { name: "Narrow" }).click();
    await until(async () => (await widthOf(page, ".open-part")) === before);
    // A link opens it as wide as it was, in another browser, too.
    const other = await context.newPage();
    await other.goto(`${url}/#/live?open=${second}&wide=yes`);
    await other.locator(".summary").waitFor();
    expect(await widthOf(other, ".open-part")).toBe(1280);
    // On a phone, it has the whole page anyway.
    await page.setViewportSize({ width: 390, height: 844 });
    await until(async () => (await widthOf(page, ".open-part")) === 390);
    expect(await page.getByRole("button", { name: "Widen" }).isVisible()).toBe(false);
  });
});
