/**
 * An answer goes to the question under the pointer at rest, or to none: what arrives, goes, expires, is sorted or moves
 * around it, on a wide screen (a list, and one question beside it), in the narrow column, and by touch. Needs a build.
 */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { type Asked, Asking, openWatched, PHONE, restOn, send, settled, WIDE } from "./resting.ts";

const cardOf = (page: Page, { token }: Asked) =>
  page.locator(".needs .question:not(:has(.question))", { hasText: token });
const approveOf = (page: Page, asked: Asked) => cardOf(page, asked).locator("button[name=approve]");
const rowOf = (page: Page, { token }: Asked) => page.locator(".ask-row", { hasText: token });
const news = (page: Page) => page.getByRole("button", { name: "1 new" });
const moved = (page: Page) => page.getByRole("alert").getByText("It moved. Look again, then press.");

/** Outcomes are shown for less, and what moved then would take a press. */
async function outcomesEnd(page: Page): Promise<void> {
  await pass(page, 20);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  // The guard sees the move, and then is calm again.
  await pass(page, 0.2);
  await pass(page, 1);
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("column: a question that expires sooner arrives under the mouse", async () => {
    const asking = await Asking.start();
    const zoe = await asking.as("caller:zoe");
    const first = await asking.ask({ by: zoe, seconds: 1800 });
    const page = await openWatched(asking.url, "#/live", { token: zoe.token });
    const { press } = await restOn(page, approveOf(page, first));
    await asking.ask({ by: zoe, seconds: 600 });
    await settled(page, asking);
    await news(page).waitFor();
    await press();
    await send(page);
    expect(await asking.givenBy("caller:zoe")).toEqual([{ token: first.token, decision: "approve" }]);
  });

  test("column: the questions above are answered by a colleague and canceled", async () => {
    const asking = await Asking.start();
    const [one, two, three, four] = [
      await asking.ask({ seconds: 1000 }),
      await asking.ask({ seconds: 1100 }),
      await asking.ask({ seconds: 1200 }),
      await asking.ask({ seconds: 1300 }),
    ];
    const page = await openWatched(asking.url, "#/live", WIDE);
    const { press } = await restOn(page, approveOf(page, three));
    await asking.answer(one);
    await asking.cancel(two);
    await settled(page, asking);
    await outcomesEnd(page);
    await press();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([{ token: three.token, decision: "approve" }]);
    expect(asking.open).toContain(four);
  });

  test("column: the question under the mouse expires, and the next one does not take its place", async () => {
    const asking = await Asking.start();
    const one = await asking.ask({ seconds: 60 });
    const two = await asking.ask({ seconds: 3000 });
    const page = await openWatched(asking.url, "#/live", WIDE);
    const { press } = await restOn(page, approveOf(page, one));
    await asking.pass(90);
    expect(asking.open).toEqual([two]);
    await settled(page, asking);
    await outcomesEnd(page);
    await press();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([]);
    // It can be answered once it is aimed at.
    await page.mouse.move(800, 20);
    await (await restOn(page, approveOf(page, two))).press();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([{ token: two.token, decision: "approve" }]);
  });

  test("list: the order changes under a mouse that rests on a row, and the row is the one that was read", async () => {
    const asking = await Asking.start();
    const [one, two] = [await asking.ask({ seconds: 2000 }), await asking.ask({ seconds: 3000 })];
    const page = await openWatched(asking.url, "#/needs", WIDE);
    const { press } = await restOn(page, rowOf(page, two));
    const three = await asking.ask({ seconds: 100 });
    await asking.answer(one);
    await settled(page, asking);
    await outcomesEnd(page);
    await press();
    await page.locator(".inbox-detail", { hasText: two.token }).waitFor();
    // Its key decides it, whatever is first now.
    await page.keyboard.press("a");
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([{ token: two.token, decision: "approve" }]);
    expect(asking.open).toContain(three);
  });

  test("list: the question that is shown stays when others arrive, and when a colleague answers it", async () => {
    const asking = await Asking.start();
    const [one, two] = [await asking.ask({ seconds: 2000 }), await asking.ask({ seconds: 3000 })];
    const page = await openWatched(asking.url, "#/needs", WIDE);
    const detail = page.locator(".inbox-detail");
    const { press } = await restOn(page, detail.locator("button[name=approve]"));
    await asking.ask({ seconds: 100 });
    await settled(page, asking);
    await press();
    await detail.getByRole("button", { name: "Undo" }).waitFor();
    await press();
    await pass(page, 1);
    // The same place, but a colleague is faster.
    await asking.answer(one);
    await settled(page, asking);
    await detail.getByText("approver colleague denied this").waitFor();
    await outcomesEnd(page);
    await press();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([]);
    expect(asking.open).toContain(two);
  });

  test("list: a question that becomes equal to others is not among those that are decided together", async () => {
    const asking = await Asking.start();
    const [one, two] = [
      await asking.ask({ seconds: 2000, what: "same" }),
      await asking.ask({ seconds: 2100, what: "same" }),
    ];
    const other = await asking.ask({ seconds: 2200 });
    const page = await openWatched(asking.url, "#/needs", WIDE);
    const all = page.getByRole("button", { name: "Approve all 2, as proposed" });
    const { press } = await restOn(page, all);
    await asking.regroup(other, "same");
    await settled(page, asking);
    await page.locator(".equal").getByRole("button", { name: "1 new" }).waitFor();
    await press();
    await send(page);
    expect((await asking.givenBy("operator")).map(({ token }) => token).sort()).toEqual([
      one.token,
      two.token,
    ]);
  });

  test("the window becomes narrow and wide again under a mouse that rests", async () => {
    const asking = await Asking.start();
    // In a narrower column, texts are higher, and what is below them moves.
    const text = "It is written in many words. ".repeat(4);
    for (let n = 0; n < 4; n += 1) await asking.ask({ seconds: 2000 + n, text: n === 0 ? text : "" });
    const page = await openWatched(asking.url, "#/needs", WIDE);
    for (const [hash, width, nth] of [
      ["#/needs", 700, 1],
      ["#/needs", 1280, 0],
      ["#/live", 1100, 1],
      ["#/live", 1280, 1],
      ["#/live", 1100, 2],
    ] as const) {
      await showView(page, hash);
      // Where Approve is, once the window has this size.
      const before = page.viewportSize() ?? { width, height: 1100 };
      await page.setViewportSize({ width, height: 1100 });
      await pass(page, 1);
      const target = page.locator(".needs button[name=approve]:visible").nth(nth);
      // On a busy machine, what it shows comes later.
      const box = await until(async () => {
        const found = await target.boundingBox();
        return found && found.y + found.height <= 1100 ? found : null;
      });
      await page.setViewportSize(before);
      await page.mouse.move(box.x + 10, box.y + 10);
      await pass(page, 1);
      await page.setViewportSize({ width, height: 1100 });
      await until(async () => (await target.boundingBox())?.y === box.y);
      await page.mouse.click(box.x + 10, box.y + 10);
      await pass(page, 1);
    }
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([]);
  });

  test("two tabs: what one has answered, the other cannot answer, nor the next question in its place", async () => {
    const asking = await Asking.start();
    const [one, two] = [await asking.ask({ seconds: 2000 }), await asking.ask({ seconds: 3000 })];
    const page = await openWatched(asking.url, "#/live", WIDE);
    const other = await page.context().newPage();
    await other.goto(`${asking.url}/#/live`);
    await other.locator(".needs .question .request").first().waitFor();
    const { press } = await restOn(page, approveOf(page, one));
    await cardOf(other, one).locator("button[name=deny]").click();
    await cardOf(other, one).getByRole("button", { name: "Undo" }).waitFor();
    await send(other);
    asking.take(one);
    await settled(page, asking);
    await outcomesEnd(page);
    await press();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([{ token: one.token, decision: "deny" }]);
    expect(asking.open).toEqual([two]);
  });

  test("keyboard: keys decide the focused question, and none when it is gone", async () => {
    const asking = await Asking.start();
    const [one, two] = [await asking.ask({ seconds: 2000 }), await asking.ask({ seconds: 3000 })];
    const page = await openWatched(asking.url, "#/live", WIDE);
    await approveOf(page, two).focus();
    await asking.ask({ seconds: 100 });
    await asking.answer(one);
    await settled(page, asking);
    await news(page).waitFor();
    await page.keyboard.press("Enter");
    await cardOf(page, two).getByRole("button", { name: "Undo" }).waitFor();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([{ token: two.token, decision: "approve" }]);
    // The outcome keeps the focus and its place; then the list takes in what waits, and no key decides that.
    await page.keyboard.press("a");
    await page.keyboard.press("d");
    await page.keyboard.press("Enter");
    await pass(page, 20);
    await page.keyboard.press("a");
    await send(page);
    expect(await asking.givenBy("operator")).toHaveLength(1);
  });

  test("phone: a question arrives and another goes between the finger and the tap, and after it was lifted", async () => {
    const asking = await Asking.start();
    const [one, two, three] = [
      await asking.ask({ seconds: 1000 }),
      await asking.ask({ seconds: 2000 }),
      await asking.ask({ seconds: 3000 }),
    ];
    const page = await openWatched(asking.url, "#/needs", PHONE);
    // Each form moves the questions below it when it is drawn.
    await cardOf(page, three).getByRole("button", { name: "Yes, for 20 min" }).waitFor();
    for (const _ of [1, 2]) await pass(page, 1);
    const finger = await page.context().newCDPSession(page);
    const undo = cardOf(page, two).getByRole("button", { name: "Undo" });
    let goes = one;
    // Right after it was drawn, the page may ignore a tap, and says so: then the reader looks again.
    for (;;) {
      const box = await approveOf(page, two).boundingBox();
      if (!box) throw new Error("not in view");
      const point = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      await finger.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [point] });
      await asking.answer(goes);
      goes = await asking.ask({ seconds: 100 });
      await settled(page, asking);
      await finger.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
      await undo.or(moved(page)).first().waitFor();
      if (await undo.isVisible()) break;
      await page.clock.runFor(5_000);
    }
    const sooner = goes;
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([{ token: two.token, decision: "approve" }]);
    asking.take(two);
    // Nobody touches the list: it moves, and a tap at once does nothing.
    await approveOf(page, sooner).waitFor();
    await pass(page, 20);
    const at = await approveOf(page, three).boundingBox();
    await asking.answer(sooner);
    await settled(page, asking);
    await until(async () => (await approveOf(page, three).boundingBox())?.y !== at?.y);
    const now = await approveOf(page, three).boundingBox();
    await page.touchscreen.tap((now?.x ?? 0) + 20, (now?.y ?? 0) + 20);
    await moved(page).waitFor();
    await send(page);
    expect(await asking.givenBy("operator")).toHaveLength(1);
  });

  test("list: the connection drops under the mouse, and what was answered meanwhile is not answered again", async () => {
    const asking = await Asking.start();
    const [one, two] = [await asking.ask({ seconds: 2000 }), await asking.ask({ seconds: 3000 })];
    const page = await openWatched(asking.url, "#/needs", WIDE);
    const detail = page.locator(".inbox-detail");
    const { press } = await restOn(page, detail.locator("button[name=approve]"));
    await page.context().setOffline(true);
    // A browser that is offline may still read from an open stream: it ends when nothing comes for 45 s.
    await pass(page, 50);
    await until(async () => {
      await pass(page, 1);
      return page.getByText("Reconnecting").isVisible();
    });
    await asking.ask({ seconds: 100 });
    await asking.answer(one);
    await press();
    await detail.getByText("Approved, not sent yet.").waitFor();
    await pass(page, 5);
    await page.context().setOffline(false);
    await until(async () => {
      await pass(page, 1);
      return detail.getByText("approver colleague denied this").isVisible();
    });
    await settled(page, asking);
    await outcomesEnd(page);
    await press();
    await send(page);
    expect(await asking.givenBy("operator")).toEqual([]);
    expect(asking.open).toContain(two);
  });
});
