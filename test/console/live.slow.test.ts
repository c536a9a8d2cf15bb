/** Live begins with the agents and with what is wrong with them. Needs a build. */
import type { Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP } from "../support/browser.ts";
import { until } from "../support/until.ts";

type Api = ReturnType<typeof client>;

async function crowd(api: Api, target: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += 100) {
    const delegations = Array.from({ length: Math.min(100, count - from) }, (_, n) => ({
      target,
      task: `${target} ${from + n}`,
    }));
    await api.call("POST", "/v1/delegations/batch", { delegations });
  }
}

/** Twelve agents and 300 delegations: one nobody works for, one paused, one overloaded, some at work. */
async function seed(api: Api): Promise<void> {
  for (let n = 0; n < 7; n += 1) await api.agent(`idle-${n}`);
  for (const name of ["coder", "triage", "archivist", "designer", "scout"]) await api.agent(name);
  const start = async (target: string) => {
    await api.delegate(target, { task: `In progress at ${target}` });
    return String((await api.lease(target, { lease_seconds: 600 })).body.leases[0].lease_id);
  };
  await api.reply(await start("scout"), { text: "done" });
  for (let n = 0; n < 6; n += 1) await start("coder");
  await start("triage");
  await crowd(api, "archivist", 204);
  await crowd(api, "designer", 37);
  await crowd(api, "triage", 52);
  await api.call("POST", "/v1/agents/designer/pause");
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".queue-line").first().waitFor();
}

/** Where each row is. */
const places = (page: Page) =>
  page
    .locator("main :is(.agent-row, .row, .queue-line, .alarm-line)")
    .evaluateAll((all) => all.map((one) => `${one.textContent} ${one.getBoundingClientRect().top}`));

const names = (page: Page) =>
  page.locator(".agent-row").evaluateAll((all) => all.map((one) => one.getAttribute("data-row")));

describe.skipIf(SKIP)("in Chromium", () => {
  test("agents come by need, alarms offer what helps, work is in view, and nothing moves under a mouse that rests", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await seed(api);
    const { page } = await openTab(url, {
      viewport: { width: 1280, height: 720 },
      expected: /Failed to load resource/,
    });
    await signIn(page);
    // Those that need somebody, then those at work; at least these, and the others are folded.
    expect(await names(page)).toEqual(["archivist", "designer", "triage", "coder"]);
    await page.getByRole("button", { name: "8 idle" }).waitFor();
    const rowOf = (agent: string) => page.locator(`.agent-row[data-row="${agent}"]`);
    const presence = rowOf("triage").locator(".presence.busy", { hasText: "all busy (1 working)" });
    expect(await presence.evaluate((one) => getComputedStyle(one).color)).toBe("rgb(146, 64, 14)");
    expect(await rowOf("coder").locator(".slot.busy").count()).toBe(6);
    await page.getByRole("link", { name: /^triage: all busy \(1 working\), 52 wait/ }).waitFor();
    const alarms = page.locator(".alarm-line");
    const texts = async () => (await alarms.locator(".alarm-text").allTextContents()).join();
    await expect
      .poll(texts)
      .toMatch(/^archivist: no worker, 204 wait .*,designer: paused, 37 wait .*,triage: all busy, 52 wait/);
    // Without scrolling, what is in progress is in view.
    const work = await page.locator(".row", { hasText: "In progress at triage" }).boundingBox();
    expect((work?.y ?? 720) + (work?.height ?? 0)).toBeLessThanOrEqual(720);

    await alarms.first().getByRole("button", { name: "How to start one for archivist" }).click();
    const help = alarms.first().getByText("errand work --agent archivist");
    await help.waitFor();
    await page.getByRole("button", { name: "8 idle" }).click();
    await expect.poll(() => rowOf("scout").locator(".agent-hour").textContent()).toBe("1 ok");
    await page.getByRole("button", { name: "Fewer" }).click();

    // A refusal is said in place; the next press resumes, and the line keeps its place until the mouse leaves.
    const refuse = async (route: Route) =>
      route.fulfill({ response: await route.fetch({ url: `${url}/v1/agents/nobody/resume` }) });
    await page.route(/designer\/resume$/, refuse, { times: 1 });
    const resume = alarms.nth(1).getByRole("button", { name: /designer/ });
    await resume.click();
    await alarms.nth(1).getByText("There is no agent of this name.").waitFor();
    await resume.click();
    await until(async () => (await api.call("GET", "/v1/agents/designer")).body.paused === false);
    await alarms.nth(1).getByText("over now").waitFor();
    expect(await alarms.nth(1).getByRole("button").textContent()).toBe("Resumed designer");
    await page.evaluate("document.activeElement?.blur()");
    await page.mouse.move(5, 5);
    await alarms.getByText("designer: no worker, 37 wait").waitFor();

    // A mouse rests on work in progress: a new alarm, and an agent that comes first, wait.
    const row = page.locator(".row", { hasText: "In progress at coder" }).first();
    await row.hover();
    const before = await places(page);
    await api.delegate("idle-3", { task: "Nobody works on it" });
    await page.getByRole("button", { name: "1 new alarm" }).waitFor();
    await page.getByRole("heading", { name: "Queue 294" }).waitFor();
    const moved = (await places(page)).filter((place) => !before.includes(place));
    expect(moved.filter((place) => !/\d+ (?:s|min)|idle-3|designer/.test(place))).toEqual([]);
    expect(await row.evaluate((one) => one.matches(":hover"))).toBe(true);
    await page.mouse.move(5, 5);
    await alarms.getByText("idle-3: no worker, 1 waits").waitFor();

    // The help that somebody reads stays when it has helped.
    await help.hover();
    await api.lease("archivist");
    await alarms.first().getByText("over now").waitFor();
    expect(await help.isVisible()).toBe(true);
  });
});
