/** Lists keep still while somebody uses them, and a control that moved takes no click. Needs a build. */
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, stopClock } from "../support/browser.ts";
import { until } from "../support/until.ts";

const LOST = /Failed to load resource|net::ERR_/;

type Api = ReturnType<typeof client>;
interface Asked {
  readonly id: string;
  readonly interrupt: string;
}

/** Of the running test. */
let url: string;
let api: Api;
let count = 0;

async function start(): Promise<void> {
  ({ url } = await startBroker());
  api = client(url);
  await ask("Water", 1800);
}

async function ask(task: string, expires: number, more: Record<string, unknown> = {}): Promise<Asked> {
  const agent = `bot-${count++}`;
  await api.agent(agent);
  const { id } = (await api.delegate(agent, { task })).body;
  const [{ lease_id: lease }] = (await api.lease(agent)).body.leases;
  const question = { text: `${task}?`, action: { name: "do", arguments: { what: task } }, ...more };
  const { body } = await api.interrupt(lease, { ...question, expires_in_seconds: expires });
  return { id, interrupt: body.interrupt_id };
}

async function open(options: Parameters<typeof openTab>[1] = {}): Promise<Page> {
  const { page } = await openTab(url, { pressesOnce: true, movesClock: true, expected: LOST, ...options });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".needs .question .request").first().waitFor();
  return page;
}

const cardOf = (page: Page, task: string) => page.locator(".needs .question", { hasText: `${task}?` });
const approveOf = (page: Page, task: string) => cardOf(page, task).locator("button[name=approve]");

/** Rests the mouse on the control. Returns what clicks there. */
async function restOn(page: Page, control: Locator): Promise<{ click: () => Promise<void> }> {
  const box = await control.boundingBox();
  if (!box) throw new Error("not in view");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  return { click: () => page.mouse.click(x, y) };
}

/** The question that a delegation of this task asks: its id, and that of the question. */
async function openOf(task: string): Promise<[string, string]> {
  const { body } = await api.call("GET", "/v1/delegations?state=input_required&limit=100");
  for (const { id } of body.delegations) {
    const { body: one } = await api.get(id);
    if (one.message.parts[0].text === task) return [id, one.interrupt.id];
  }
  throw new Error(`nothing asks about ${task}`);
}

const touch = (page: Page, type: string) => page.locator(".needs .question").first().dispatchEvent(type);

const topOf = async (card: Locator): Promise<number> => (await card.boundingBox())?.y ?? Number.NaN;
const isPending = (page: Page, task: string) => cardOf(page, task).getByRole("button", { name: "Undo" });
const decisionOf = async ({ id }: Asked) => (await api.get(id)).body.history.at(-1)?.metadata?.decision;

describe.skipIf(SKIP)("in Chromium", () => {
  test("under a mouse that rests, nothing moves: new questions wait, those that are over keep their places", async () => {
    await start();
    const last = await ask("Last", 3600);
    const page = await open();
    const before = [await topOf(cardOf(page, "Water")), await topOf(cardOf(page, "Last"))];
    const places = async () => [await topOf(cardOf(page, "Water")), await topOf(cardOf(page, "Last"))];
    const { click } = await restOn(page, approveOf(page, "Last"));
    const drop = await ask("Drop the table", 600);
    const news = page.getByRole("button", { name: "1 new" });
    await news.waitFor();
    expect(await places()).toEqual(before);
    // A colleague answers the first, and the time of another ends.
    await api.answer(...(await openOf("Water")), { decision: "deny" });
    await cardOf(page, "Water").getByText("operator denied this").waitFor();
    expect(await places()).toEqual(before);
    await click();
    await isPending(page, "Last").waitFor();
    await pass(page, 5);
    await until(async () => (await decisionOf(last)) === "approve");
    await cardOf(page, "Last").getByText("Approved").waitFor();
    await pass(page, 20);
    expect(await places()).toEqual(before);
    expect(await decisionOf(drop)).toBeUndefined();
    // They come in when the reader wants it, or leaves.
    await news.click();
    await approveOf(page, "Drop the table").waitFor();
    expect(await cardOf(page, "Last").count()).toBe(0);
    await approveOf(page, "Drop the table").hover();
    await ask("Later", 300);
    await news.waitFor();
    await page.mouse.move(900, 700);
    await approveOf(page, "Later").waitFor();
  });

  test("a focused question stays where it is, and a finger holds the list, too", async () => {
    await start();
    const page = await open();
    const before = await topOf(cardOf(page, "Water"));
    await cardOf(page, "Water").focus();
    await ask("Sooner", 60);
    await page.getByRole("button", { name: "1 new" }).waitFor();
    expect(await topOf(cardOf(page, "Water"))).toBe(before);
    await page.keyboard.press("n");
    await approveOf(page, "Sooner").waitFor();
    // The focus stays with its question.
    expect(await cardOf(page, "Water").evaluate((card) => card === document.activeElement)).toBe(true);

    await page.locator("#needs-title").focus();
    await touch(page, "touchstart");
    await ask("Soonest", 30);
    await page.getByRole("button", { name: "1 new" }).waitFor();
    await touch(page, "touchend");
    await approveOf(page, "Soonest").waitFor();
  });

  test("a button that moved by itself ignores a click, says so, and takes the next", async () => {
    await start();
    const page = await open();
    const push = (height: number) =>
      page.evaluate((px) => {
        const banner = document.createElement("div");
        banner.style.height = `${px}px`;
        document.querySelector(".needs-column")?.prepend(banner);
      }, height);
    const { click } = await restOn(page, approveOf(page, "Water"));
    // What has moved is calm again after half a second, and a busy machine clicks later.
    await stopClock(page);
    await pass(page, 1);
    await push(10);
    await click();
    await page.getByRole("alert").getByText("It moved. Look again, then press.").waitFor();
    expect(await isPending(page, "Water").count()).toBe(0);
    await pass(page, 1);
    // At its new place, too.
    await push(80);
    await approveOf(page, "Water").click();
    expect(await isPending(page, "Water").count()).toBe(0);
    await page.clock.resume();
    await pass(page, 1);
    // What the reader does moves it, and it takes the click.
    await cardOf(page, "Water").getByText("Comment…").click();
    await cardOf(page, "Water").getByLabel("Comment for the agent").fill("Once");
    await approveOf(page, "Water").click();
    await isPending(page, "Water").waitFor();
    // A double click is one press: Undo has come to the place.
    await isPending(page, "Water").click();
    await approveOf(page, "Water").dblclick();
    await isPending(page, "Water").waitFor();
  });

  test("a lost connection, a banner and a scroll move no question away from under the mouse", async () => {
    await start();
    for (let n = 0; n < 5; n += 1) await ask(`Task ${n}`, 2000 + n);
    const page = await open();
    const { click } = await restOn(page, approveOf(page, "Water"));
    const before = await topOf(cardOf(page, "Water"));
    await page.context().setOffline(true);
    await until(async () => {
      await pass(page, 1);
      return page.getByText("Reconnecting").isVisible();
    });
    expect(await topOf(cardOf(page, "Water"))).toBe(before);
    await ask("Meanwhile", 100);
    await page.context().setOffline(false);
    await until(async () => {
      await pass(page, 1);
      return page.getByRole("button", { name: "1 new" }).isVisible();
    });
    await until(async () => (await page.locator(".reconnecting").count()) === 0);
    expect(await topOf(cardOf(page, "Water"))).toBe(before);
    await pass(page, 1);
    // The page scrolls by itself under the mouse; then the reader does.
    const other = await topOf(cardOf(page, "Task 0"));
    await page.locator(".needs-column").evaluate((column, by) => column.scrollBy(0, by), other - before);
    await click();
    await page.getByRole("alert").getByText("It moved.").waitFor();
    expect(await isPending(page, "Task 0").count()).toBe(0);
    await pass(page, 1);
    await page.mouse.wheel(0, -(other - before));
    await until(async () => (await topOf(cardOf(page, "Water"))) === before);
    await click();
    await isPending(page, "Water").waitFor();
  });

  test("what the reader does excuses no question that comes in meanwhile", async () => {
    await start();
    const page = await open();
    await pass(page, 1);
    const { click } = await restOn(page, approveOf(page, "Water"));
    await pass(page, 1);
    // In the frame of a key, another question takes the place of this one.
    await cardOf(page, "Water").evaluate((card) => {
      dispatchEvent(new KeyboardEvent("keydown", { key: "Shift" }));
      const other = card.cloneNode(true);
      if (other instanceof HTMLElement) other.dataset.question = "int_other";
      other.addEventListener("click", () => document.body.classList.add("pressed"));
      card.replaceWith(other);
    });
    await click();
    await page.getByRole("alert").getByText("It moved.").waitFor();
    expect(await page.locator("body.pressed").count()).toBe(0);
    await pass(page, 1);
    await click();
    await page.locator("body.pressed").waitFor();
  });

  test("of a queue in use, the rows that are over do not count as shown", async () => {
    await start();
    await api.agent("coder");
    const ids: string[] = [];
    for (let n = 0; n < 37; n += 1) ids.push((await api.delegate("coder", { task: `t${n}` })).body.id);
    const page = await open();
    const queue = page.locator("main li", { has: page.locator(".queue-line", { hasText: "in coder" }) });
    await queue.getByText("37 wait").click();
    await queue.getByText("32 more").waitFor();
    await queue.locator(".row").first().hover();
    for (const id of ids.slice(0, 5)) await api.call("POST", `/v1/delegations/${id}/cancel`, {});
    await until(async () => {
      await pass(page, 5);
      return queue.getByText("32 wait").isVisible();
    });
    await queue.getByText("32 more").waitFor();
    expect(await queue.locator(".row").count()).toBe(5);
  });
});
