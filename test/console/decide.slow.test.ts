/** Answers where they are given: Undo in the place of the button, the first tap, several at once. Needs a build. */
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView, tick } from "../support/browser.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;
let count = 0;

async function ask(api: Api, question: Record<string, unknown>): Promise<string> {
  const agent = `asker-${count++}`;
  await api.agent(agent);
  const { id } = (await api.delegate(agent, { task: `For ${agent}` })).body;
  const [{ lease_id: lease }] = (await api.lease(agent)).body.leases;
  await api.interrupt(lease, question);
  return id;
}

async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
  const { page } = await openTab(url, { movesClock: true, ...options });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".question .request").first().waitFor();
  await pass(page, 1);
  return page;
}

async function boxOf(one: Locator) {
  const box = await one.boundingBox();
  if (!box) throw new Error("not drawn");
  return box;
}

const PHONE = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true };
/** Higher than any of the windows. */
const LONG = {
  text: "Apply all of this?",
  action: {
    name: "config.apply",
    arguments: { changes: Array.from({ length: 14 }, (_, n) => ({ path: `/etc/app/${n}.conf`, value: n })) },
  },
  edit: true,
};

describe.skipIf(SKIP)("in Chromium", () => {
  test("Undo stands where the button was, in view, and the card keeps its height", async () => {
    const { url } = await startBroker();
    await ask(client(url), LONG);
    for (const options of [{ viewport: { width: 1280, height: 720 } }, PHONE]) {
      const page = await open(url, options);
      const card = page.locator(".needs .question");
      const column = page.locator(".column", { has: card }).first();
      for (const name of ["Approve", "Deny"]) {
        const button = card.getByRole("button", { name });
        await button.scrollIntoViewIfNeeded();
        await pass(page, 1);
        const [before, whole, top] = [
          await boxOf(button),
          await boxOf(card),
          await column.evaluate((one) => one.scrollTop),
        ];
        await button.click();
        const undo = card.getByRole("button", { name: "Undo" });
        const after = await boxOf(undo);
        const isOver =
          after.x < before.x + before.width &&
          after.x + after.width > before.x &&
          Math.abs(after.y - before.y) < before.height / 2;
        expect([name, isOver, after.y + after.height <= options.viewport.height]).toEqual([name, true, true]);
        expect(await boxOf(card)).toEqual(whole);
        expect(await column.evaluate((one) => one.scrollTop)).toBe(top);
        await undo.click();
      }
    }
  });

  test("on a phone the first tap on Edit, Deny and Approve works, and nothing moves under it", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await ask(api, { text: "First?", action: { name: "do", arguments: { sql: "SELECT 1" } }, edit: true });
    await ask(api, { text: "Second?", action: { name: "do", arguments: {} }, edit: true });
    const page = await open(url, PHONE);
    const card = page.locator(".needs .question", { hasText: "Second?" });
    const places = () =>
      card.locator(".buttons button").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().x));
    // For a thumb. A link in a text keeps the height of its line.
    const small = await page
      .locator(":is(button, input, select, textarea, summary, label.select, .phone-bar a):visible")
      .evaluateAll((all) =>
        all
          .filter((one) => !one.matches("[type=checkbox]"))
          .filter(
            (one) => Math.min(one.getBoundingClientRect().width, one.getBoundingClientRect().height) < 44,
          )
          .map((one) => one.outerHTML),
      );
    expect(small).toEqual([]);
    const before = await places();
    const tap = async (name: string) => {
      const button = card.getByRole("button", { name });
      await button.scrollIntoViewIfNeeded();
      const { x, y, width, height } = await boxOf(button);
      await page.touchscreen.tap(x + width - 4, y + height / 2);
    };
    await tap("Edit");
    await card.getByLabel("Arguments of do").waitFor();
    expect((await places()).slice(0, 2)).toEqual(before.slice(0, 2));
    for (const name of ["Deny", "Approve"]) {
      await page.locator("#needs-title").focus();
      await tap(name);
      await card.getByRole("button", { name: "Undo" }).tap();
    }
  });

  test("what asks for words or data has no Approve, and is not among all that are selected", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const ids: string[] = [];
    for (const text of ["One?", "Two?"])
      ids.push(await ask(api, { text, action: { name: "do", arguments: {} } }));
    const required = { type: "object", properties: { branch: { type: "string" } }, required: ["branch"] };
    const others = [
      { text: "What should the tone be?" },
      { text: "Which branch?", schema: required },
      { text: "Approve by data?", options: ["approve", "deny"], schema: required },
      { kind: "auth", text: "May I sign in?" },
    ];
    for (const other of others) ids.push(await ask(api, other));
    const page = await open(url, { viewport: { width: 1280, height: 900 } });
    await showView(page, "#/live");
    const words = page.locator(".question", { hasText: "What should the tone be?" });
    await words.getByLabel("Answer in words").waitFor();
    expect(await words.getByRole("button").allTextContents()).toEqual(["Answer"]);
    await words.focus();
    await page.keyboard.press("a");
    await words.getByText("Answer in words (r).").waitFor();
    const first = page.locator(".question", { hasText: "One?" });
    const before = await boxOf(page.locator(".question", { hasText: "Two?" }));
    await tick(first.getByRole("checkbox"));
    // The bar pushes nothing.
    expect(await boxOf(page.locator(".question", { hasText: "Two?" }))).toEqual(before);
    await page.getByRole("button", { name: "Select all 2" }).click();
    await page.getByRole("button", { name: "Approve 2" }).click();
    // Each has its Undo, and then its outcome, in its place.
    for (const text of ["One?", "Two?"]) {
      const card = page.locator(".question", { hasText: text });
      await card.getByRole("button", { name: "Undo" }).waitFor();
    }
    await pass(page, 5);
    const decided = async () => {
      const all = await Promise.all(ids.map(async (id) => (await api.get(id)).body.state));
      return all.map((state) => state === "submitted").join();
    };
    await until(async () => (await decided()) === "true,true,false,false,false,false");
    expect(await boxOf(page.locator(".question", { hasText: "Two?" }))).toEqual(before);
    await page.locator(".question.over", { hasText: "Two?" }).getByText("Approved").waitFor();
  });

  test("several are denied together only as far as they offer that", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const options = ["approve", "Tonight"];
    const ids = [await ask(api, { text: "One?", options }), await ask(api, { text: "Two?", options })];
    const action = { name: "do\u2066", arguments: { path: "x\u202egpj", faces: "👨‍👩‍👧" } };
    ids.push(await ask(api, { text: "Three?", action }));
    const page = await open(url, { viewport: { width: 1280, height: 900 } });
    await showView(page, "#/live");
    const bar = page.locator(".several");
    const box = (text: string) => page.locator(".question", { hasText: text }).getByRole("checkbox");
    // Who approves it sees what would turn the direction of the text.
    const proposal = page.locator(".proposal");
    await proposal.getByText("do\\u{2066}", { exact: true }).waitFor();
    await proposal.getByText("x\\u{202e}gpj", { exact: true }).waitFor();
    await proposal.getByText("👨‍👩‍👧", { exact: true }).waitFor();
    await tick(box("One?"));
    await bar.getByRole("button", { name: "Approve 1" }).waitFor();
    expect(await bar.getByRole("button", { name: /^Deny/ }).count()).toBe(0);
    await bar.getByRole("button", { name: "Select all 3" }).click();
    await bar.getByRole("button", { name: "Approve 3" }).waitFor();
    await bar.getByRole("button", { name: "Deny 1" }).click();
    await bar.getByRole("button", { name: "Approve 2" }).waitFor();
    await pass(page, 5);
    const states = async () =>
      (await Promise.all(ids.map((id) => api.get(id)))).map(({ body }) => body.state);
    await until(async () => (await states()).join() === "input_required,input_required,submitted");
  });
});
