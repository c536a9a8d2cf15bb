/** A random walk: whatever happens around a mouse that rests, it clicks on the question it rests on, or on nothing. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP } from "../support/browser.ts";
import { until } from "../support/until.ts";

const SEED = 20261127;
const STEPS = 24;
/** The mouse goes to another question after so many steps. */
const REST = 6;

/** Numbers below `n`, the same in every run. */
function random(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** The question at the point, and whether it has an answer that can be taken back. */
const at = (page: Page, [x, y]: readonly [number, number]) =>
  page.evaluate(
    ([left, top]) => {
      const card = document.elementFromPoint(left ?? 0, top ?? 0)?.closest<HTMLElement>("[data-question]");
      return card?.dataset.question;
    },
    [x, y],
  );

const undos = (page: Page): Promise<(string | undefined)[]> =>
  page
    .locator(".needs [data-question]:has(.in-place button)")
    .evaluateAll((all) => all.map((one) => (one instanceof HTMLElement ? one.dataset.question : undefined)));

describe.skipIf(SKIP)("in Chromium", () => {
  test(`random questions, answers, cancels and banners around a resting mouse (seed ${SEED})`, async () => {
    const { url } = await startBroker();
    const api = client(url);
    const below = random(SEED);
    let asked = 0;
    const open: { readonly id: string; readonly interrupt: string }[] = [];
    const ask = async () => {
      asked += 1;
      const agent = `bot-${asked}`;
      await api.agent(agent);
      const { id } = (await api.delegate(agent, { task: `Task ${asked}` })).body;
      const [{ lease_id: lease }] = (await api.lease(agent)).body.leases;
      const action = { name: "do", arguments: { size: "x".repeat(below(200)) } };
      const question = { text: "May I?", action, expires_in_seconds: 60 + below(3600) };
      open.push({ id, interrupt: (await api.interrupt(lease, question)).body.interrupt_id });
    };
    for (let n = 0; n < 4; n += 1) await ask();
    const { page } = await openTab(url, { pressesOnce: true, viewport: { width: 1280, height: 1000 } });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    const badge = page.locator(".needs h1 .badge");
    const steps = {
      ask,
      answer: async () => {
        const [one] = open.splice(below(open.length), 1);
        if (one) await api.answer(one.id, one.interrupt, { decision: "deny" });
      },
      cancel: async () => {
        const [one] = open.splice(below(open.length), 1);
        if (one) await api.cancel(one.id);
      },
      banner: () =>
        page.evaluate(() => {
          const [banner] = document.getElementsByClassName("test-banner");
          if (banner) return banner.remove();
          const one = document.createElement("div");
          one.className = "test-banner";
          one.style.height = "40px";
          document.querySelector(".needs-column")?.prepend(one);
        }),
    };
    const names = ["ask", "answer", "ask", "cancel", "banner"] as const;
    let point: readonly [number, number] = [0, 0];
    let rested: string | undefined;
    for (let n = 0; n < STEPS; n += 1) {
      if (n % REST === 0) {
        // Away, so that the list takes in what is new; then to any question.
        await page.mouse.move(1000, 900);
        const held = page.locator(".needs :is(.news, [data-question].over)");
        await until(async () => (await held.count()) === 0);
        const all = page.locator(".needs [data-question] button[name=approve]");
        await all.first().waitFor();
        const box = await all.nth(below(Math.min(2, await all.count()))).boundingBox();
        point = [(box?.x ?? 0) + 20, (box?.y ?? 0) + 12];
        await page.mouse.move(...point);
        rested = await at(page, point);
        expect(rested).toMatch(/^int_/);
      }
      const name = open.length < 3 ? "ask" : (names[below(names.length)] ?? "ask");
      await steps[name]();
      await until(async () => (await badge.textContent()) === String(open.length));
      const under = await at(page, point);
      if (under === rested) continue;
      // A banner has pushed the list: what came under the mouse takes no click.
      expect([n, name]).toEqual([n, "banner"]);
      await page.mouse.click(...point);
      expect([n, await undos(page)]).toEqual([n, []]);
      rested = under;
    }
    // It takes one at the end, of the question that it rests on.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 600)));
    const last = await at(page, point);
    await page.mouse.click(...point);
    const answered = await undos(page);
    expect(answered.every((one) => one === last)).toBe(true);
  });
});
