/** The palette (Ctrl+K): by keyboard alone, everywhere, and nothing happens by mistake. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setScene } from "./scene.ts";

const hashOf = (page: Page): string => new URL(page.url()).hash;

describe.skipIf(SKIP)("in Chromium", () => {
  test("goes to views, agents, questions and delegations, and does things", async () => {
    const { url } = await startBroker();
    const { ids } = await setScene(url);
    const api = client(url);
    const { page } = await openTab(url);
    await page.getByLabel("Token").waitFor();
    // Nobody is signed in.
    await page.keyboard.press("Control+k");
    await page.getByLabel("Token").fill(OPERATOR);
    await page.keyboard.press("Enter");
    await page.locator(".agent-row").first().waitFor();
    const field = page.getByRole("combobox", { name: /^Go to a view/ });
    const marked = page.locator(".palette [aria-selected=true]");
    const openWith = async (text: string): Promise<void> => {
      await page.keyboard.press("Control+k");
      await field.waitFor();
      await page.keyboard.type(text);
    };
    const choose = async (text: string, shown: string): Promise<void> => {
      await openWith(text);
      await page.locator(".palette [aria-selected=true]", { hasText: shown }).waitFor();
      await page.keyboard.press("Enter");
      await page.locator(".palette").waitFor({ state: "detached" });
    };

    // The field names the option that Enter takes; the arrows move it, and go round.
    await openWith("");
    await marked.waitFor();
    const active = await field.getAttribute("aria-activedescendant");
    expect(await marked.getAttribute("id")).toBe(active);
    expect(await page.locator(".palette [role=option]").allTextContents()).not.toContain("Sign out");
    await page.keyboard.press("ArrowDown");
    expect(await marked.textContent()).toBe("Answered");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    expect(await page.locator(".palette [role=option]").last().getAttribute("aria-selected")).toBe("true");
    // Escape closes it and nothing else.
    await page.keyboard.press("Escape");
    await page.locator(".palette").waitFor({ state: "detached" });

    await choose("chart", "Charts");
    await page.getByRole("heading", { name: "Charts" }).waitFor();
    await choose("deployer", "deployer");
    await page.getByRole("heading", { name: "deployer", exact: true }).waitFor();
    // A question is opened, and not answered.
    await choose("new search", "Deploy the new search to production");
    await until(() => hashOf(page).includes(String(ids.asking)));
    await page.keyboard.press("Enter");
    expect((await api.get(String(ids.asking))).body.state).toBe("input_required");
    // Ended work is found at the broker: by words, and by the end of the id only while it is in view.
    await choose("nightly checks", "Run the nightly checks");
    await until(() => hashOf(page).includes(String(ids.failed)));
    await choose(String(ids.completed), "Count the words");
    await until(() => hashOf(page).includes(String(ids.completed)));
    // A few letters never sign out, and what is marked stays while a question comes that would be better.
    await openWith("sig");
    await page.locator(".palette [role=option]", { hasText: "Sign out" }).waitFor();
    await field.fill("s");
    await page.locator(".palette [role=option]", { hasText: "Sign out" }).waitFor();
    expect(await marked.textContent()).not.toContain("Sign out");
    await field.fill("nightly");
    await page.locator(".palette [aria-selected=true] small", { hasText: /^agent$/ }).waitFor();
    await api.agent("asker");
    await api.delegate("asker", { task: "Nightly: go on?" });
    const [{ lease_id: lease }] = (await api.lease("asker")).body.leases;
    await api.interrupt(lease, { text: "Go on?" });
    await page.locator(".palette [role=option]", { hasText: "asker asks" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "nightly", exact: true }).waitFor();
    await choose("theme dark", "Theme: dark");
    await page.locator("[data-theme=dark]").waitFor();

    // To pause asks first, and a second Enter does nothing. To resume does not ask.
    await showView(page, "#/live");
    await openWith("pause coder");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Pause coder?" }).waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".palette").waitFor({ state: "detached" });
    expect((await api.call("GET", "/v1/agents/coder")).body.paused).toBe(false);
    await openWith("pause coder");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await until(async () => (await api.call("GET", "/v1/agents/coder")).body.paused);
    await page.locator(".palette").waitFor({ state: "detached" });
    await choose("resume nightly", "Resume nightly");
    await until(async () => !(await api.call("GET", "/v1/agents/nightly")).body.paused);

    // In a field it opens, too, and the field keeps its text and gets the focus back. Not over another dialog.
    await showView(page, "#/delegate");
    await page.getByLabel("Task").fill("Half a");
    await page.keyboard.press("Control+k");
    await field.waitFor();
    await page.keyboard.press("Control+k");
    await page.locator(".palette").waitFor({ state: "detached" });
    await page.keyboard.type(" sentence");
    expect(await page.getByLabel("Task").inputValue()).toBe("Half a sentence");
    await page.locator("h1").first().click();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).getByText("Ctrl+K").waitFor();
    await page.keyboard.press("Control+k");
    expect(await page.locator(".palette").count()).toBe(0);
    // Who goes back leaves what is over the page.
    await page.goBack();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await field.waitFor();
    await page.goForward();
    await page.locator(".palette").waitFor({ state: "detached" });
  });
});
