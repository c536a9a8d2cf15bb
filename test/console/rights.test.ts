/** Each kind of principal sees what it may do and nothing that is refused; errors are in plain words. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { as, client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setScene } from "./scene.ts";

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".agent-row").first().waitFor();
}

const VIEWS = ["find", "charts", "agents?name=coder", "agents?part=tokens"];
const LOST = /Failed to load resource|net::ERR_/;

/** Each principal: its buttons that change something, and the delegations of the scene that it may see. */
const PRINCIPALS = [
  { principal: "viewer:vic", may: [], sees: ["working", "failed"] },
  {
    principal: "approver:ann",
    may: ["Answer", "Approve", "Both", "Cancel", "Deny", "Send"],
    sees: ["working", "asking"],
  },
  {
    principal: "caller:alice",
    may: ["+ Delegate", "Answer", "Approve", "Cancel", "Deny", "Erase", "Send"],
    sees: ["working", "asking", "completed"],
  },
  { principal: "agent:coder", may: ["+ Delegate", "Save"], sees: ["working"] },
];
/** Buttons that change nothing at the broker. */
const HARMLESS = ["To the view", "More filters", "Copy", "✕", "Edit", "Last week", "This week", "Reading …"];

describe.skipIf(SKIP)("in Chromium", () => {
  test("everybody has the buttons that are allowed, and none that is refused", async () => {
    const { url } = await startBroker();
    const { ids } = await setScene(url);
    const { page } = await openTab(url);
    const refused: string[] = [];
    page.on("response", (response) => {
      if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`);
    });
    for (const { principal, may, sees } of PRINCIPALS) {
      await signIn(page, (await as(url, principal)).token);
      const found = new Set<string>();
      for (const view of [...VIEWS, ...sees.map((name) => `live?open=${ids[name]}`)]) {
        await showView(page, `#/${view}`);
        const names = await page.locator(":is(button, a.button):visible").allTextContents();
        for (const name of names) found.add(name.trim().replace(/ [ad]$/, ""));
      }
      for (const harmless of HARMLESS) found.delete(harmless);
      expect([principal, ...[...found].sort()]).toEqual([principal, ...may]);
      await showView(page, "#/live");
      await page.locator(".account summary").click();
      await page.getByRole("button", { name: "Sign out" }).click();
    }
    expect(refused).toEqual([]);
  });

  test("what is not there, and a broker that is away, in plain words", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    const { page, context } = await openTab(url, { expected: LOST, movesClock: true });
    await signIn(page, OPERATOR);
    const problem = page.locator(".problem");
    await showView(page, `#/live?open=${"dlg_0_".padEnd(id.length, "0")}`);
    const texts = [await problem.textContent()];
    await showView(page, `#/live?open=${id.slice(0, -4)}`);
    texts.push(await problem.textContent());
    await showView(page, "#/agents?name=nobody");
    texts.push(await problem.textContent());
    await showView(page, `#/live?open=${id}`);
    await page.getByLabel("A follow-up for the agent").fill("Hurry");
    await context.setOffline(true);
    await page.getByRole("button", { name: "Send" }).click();
    await until(async () => {
      await pass(page, 2);
      return problem.isVisible();
    });
    texts.push(await problem.textContent());
    expect(texts).toEqual([
      expect.stringMatching(
        /^There is no delegation 'dlg_\S+'. Check the id. Finished delegations are deleted/,
      ),
      "The address of this page names no delegation. Its id may be cut off. ",
      "There is no agent of this name. It may have been deleted: Agents lists those that exist.",
      "The broker does not answer. It is not known whether this was done: look first, then try again.",
    ]);
    // What was typed is still there.
    expect(await page.getByLabel("A follow-up for the agent").inputValue()).toBe("Hurry");
    await context.setOffline(false);
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator(".conversation", { hasText: "Hurry" }).waitFor();
    expect(await problem.count()).toBe(0);
  });
});
