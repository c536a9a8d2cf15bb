/** The console by keyboard alone, on a narrow phone, and without motion. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { holdBack, openTab, SKIP, showView, widerThanWindow } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setScene } from "./scene.ts";

/** What has the focus: its label, or its text. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const { activeElement } = document;
    return (activeElement?.getAttribute("aria-label") ?? activeElement?.textContent ?? "").trim();
  });

const tab = async (page: Page, times: number): Promise<void> => {
  for (let n = 0; n < times; n += 1) await page.keyboard.press("Tab");
};

/** Controls that a mouse can use and Tab does not reach in turn. */
const unreachable = (page: Page) =>
  page
    .locator(":is(a, button, input, select, textarea, summary, [role=slider], .code):visible")
    .evaluateAll((all) =>
      all
        .filter((one) => !(one instanceof HTMLElement && (one.tabIndex === 0 || one.matches(":disabled"))))
        .map((one) => one.outerHTML),
    );

describe.skipIf(SKIP)("in Chromium", () => {
  test("by keyboard alone: the focus follows what opens and closes, and shortcuts leave dialogs alone", async () => {
    const { url } = await startBroker();
    const { ids } = await setScene(url);
    const { page } = await openTab(url);
    const forms = await holdBack(page, /answer-fields-/);
    await until(() => page.getByLabel("Token").evaluate((field) => field === document.activeElement));
    await page.keyboard.type(OPERATOR);
    await page.keyboard.press("Enter");
    await page.locator(".agent-row").first().waitFor();
    await until(() => page.evaluate("document.activeElement?.id === 'view'"));
    // A ring around the whole view would mark nothing.
    expect(await page.locator("#view").evaluate((one) => getComputedStyle(one).outlineStyle)).toBe("none");
    const row = page.locator(".row", { hasText: "Fix the flaky login test" });
    await page.locator(`main [data-row="${ids.long}"]`).waitFor();
    await page.locator(".needs .question").nth(2).waitFor();

    // The questions come first among the rows, then the delegations.
    for (let n = 0; n < 3; n += 1) await page.keyboard.press("j");
    expect(await focused(page)).toContain("coder, working for alice, asks: Find out why the nightly build");
    // A key that comes before the form decides nothing and gives no advice.
    await page.keyboard.press("a");
    expect(await page.locator(".needs .question:focus .answer").textContent()).toBe("Loading …");
    forms.release();
    // A form is neither approved nor denied, and the page says so.
    const form = page.locator(".needs .question", { hasText: "I need a few details" });
    await form.getByLabel("Branch").waitFor();
    await page.keyboard.press("a");
    await form.getByText("Fill in the form (Tab)").waitFor();
    await page.keyboard.press("r");
    expect(await form.getByLabel("Branch").evaluate((field) => field === document.activeElement)).toBe(true);
    // Enter opens a question, and Escape comes back to it.
    await form.focus();
    await page.keyboard.press("Enter");
    await until(async () => (await focused(page)) === "Delegation");
    await page.keyboard.press("Escape");
    await until(async () => (await focused(page)).startsWith("coder, working"));
    await page.keyboard.press("k");
    await page.keyboard.press("d");
    await page.locator(".needs .question").getByText("Choose an option (Tab)").waitFor();
    await page.keyboard.press("j");
    for (let n = 0; n < 6; n += 1) await page.keyboard.press("j");
    expect(await row.evaluate((row) => row === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await until(async () => (await focused(page)) === "Delegation");
    await page.locator(".summary").waitFor();
    await tab(page, 3);
    expect(await focused(page)).toBe("Close");
    // From the open delegation, the keys go on at its row; before the delegations are the agents.
    await page.keyboard.press("k");
    expect(await focused(page)).toMatch(/^scout: .*1 asks/);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Cancel" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Keep as it is" }).focus();
    for (const key of ["j", "a", "/"]) await page.keyboard.press(key);
    expect(await focused(page)).toBe("Keep as it is");
    // Escape closes the dialog alone.
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await focused(page)).toBe("Cancel");
    expect(new URL(page.url()).hash).toContain("#/live?open=");
    await page.keyboard.press("Escape");
    await until(() => row.evaluate((row) => row === document.activeElement));

    // The answer is taken back by the key that gave it.
    const approve = page.locator(".needs").getByRole("button", { name: "Approve" });
    const proposal = page.locator(".needs .question", { hasText: "2.4.1" });
    await proposal.focus();
    // The label and the hint of the key are in the middle together.
    const offCentre = await approve.evaluate((button) => {
      const range = document.createRange();
      range.selectNodeContents(button);
      const [inner, outer] = [range.getBoundingClientRect(), button.getBoundingClientRect()];
      return inner.left + inner.right - outer.left - outer.right;
    });
    expect(Math.abs(offCentre)).toBeLessThan(4);
    await page.keyboard.press("r");
    await page.keyboard.type("After lunch");
    await page.getByRole("button", { name: "Approve with comment" }).focus();
    await page.keyboard.press("Enter");
    await until(async () => (await focused(page)) === "Undo");
    // What is approved stays in view, and cannot be changed.
    expect(await proposal.locator("[inert] .proposal").isVisible()).toBe(true);
    await page.keyboard.press("Enter");
    await approve.waitFor();
    expect(await proposal.locator("[inert]").count()).toBe(0);
    expect(await proposal.getByLabel("Comment for the agent").inputValue()).toBe("After lunch");

    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.locator(".account summary").focus();
    await page.keyboard.press("Enter");
    await tab(page, 1);
    expect(await page.evaluate("document.activeElement.tagName")).toBe("SELECT");
    await page.keyboard.press("Escape");
    expect(await focused(page)).toBe("operator");
    // An agent opens in place, and its work is the next row.
    const coder = page.locator('.agent-row[data-row="coder"]');
    await coder.focus();
    await page.keyboard.press("Enter");
    await until(async () => (await coder.getAttribute("aria-expanded")) === "true");
    expect(new URL(page.url()).hash).toContain("agent=coder");
    expect(await coder.evaluate((one) => one === document.activeElement)).toBe(true);
    await page.locator(".agent-work .row").first().waitFor();
    await page.keyboard.press("j");
    expect(await focused(page)).toContain("Find out why the nightly build");
    // A link that goes with the view that it opens.
    await page.getByRole("link", { name: "The page of coder" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "coder" }).waitFor();
    await until(() => page.evaluate("document.activeElement?.id === 'view'"));
    // A ring around the whole view would mark nothing.
    expect(await page.locator("#view").evaluate((one) => getComputedStyle(one).outlineStyle)).toBe("none");

    await showView(page, "#/charts");
    const chart = page.getByRole("slider", { name: "Delegated: 9" });
    await chart.focus();
    expect(await chart.getAttribute("aria-valuetext")).toMatch(/^\d\d:\d\d.*: delegated \d$/);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    expect(await chart.getAttribute("aria-valuenow")).toBe("1");
    await page.locator(".chart-times", { hasText: "delegated 0" }).waitFor();
  });

  test("everything is in reach of Tab, and nothing is wider than a phone of 360 pixels, in every view", async () => {
    const { url } = await startBroker();
    const { ids } = await setScene(url);
    const { page } = await openTab(url, { reducedMotion: "reduce" });
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".row").first().waitFor();
    const travel = page.locator(".row .meter i").first();
    expect(await travel.evaluate((one) => getComputedStyle(one).transitionDuration)).toBe("0s");
    const views = [
      "#/live",
      "#/needs",
      "#/find?delegator=caller:alice",
      "#/agents",
      "#/agents?name=deployer",
      "#/agents?part=tokens",
      "#/agents?part=log",
      "#/agents?part=schedules",
      "#/agents?part=rules",
      "#/agents?part=notifications",
      "#/charts",
      "#/delegate",
      ...["conversation", "timeline", "artifacts", "tree", "raw"].map(
        (part) => `#/live?open=${part === "artifacts" ? ids.completed : ids.long}&tab=${part}`,
      ),
      `#/live?open=${ids.asking}`,
    ];
    for (const view of views) {
      await showView(page, view);
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 780 });
        // The page lays itself out anew once it knows its size.
        await until(async () => (await widerThanWindow(page)).length === 0, { timeoutMs: 5_000 }).catch(
          () => undefined,
        );
        expect.soft(await unreachable(page), `${view} at ${width}`).toEqual([]);
        expect.soft(await widerThanWindow(page), `${view} at ${width}`).toEqual([]);
      }
    }
  });
});
