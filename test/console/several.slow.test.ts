/** Several delegations of Find selected, tried again or canceled together. Needs a build. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, pass, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";

const LOST = /Failed to load resource|net::ERR_/;

type Api = ReturnType<typeof client>;

/** Delegations that failed. Returns their ids, oldest first. */
async function fail(api: Api, target: string, tasks: readonly string[]): Promise<string[]> {
  await api.agent(target);
  const delegations = tasks.map((task) => ({ target, task, max_attempts: 1 }));
  const { body } = await api.call("POST", "/v1/delegations/batch", { delegations });
  const ids: string[] = body.results.map(({ delegation }: { delegation: { id: string } }) => delegation.id);
  for (let left = ids.length; left > 0; ) {
    const { leases } = (await api.lease(target, { max: Math.min(20, left) })).body;
    left -= leases.length;
    const error = { code: "disk_full", message: "No space left" };
    for (const { lease_id } of leases) await api.reply(lease_id, { state: "failed", text: "", error });
  }
  return ids;
}

async function open(url: string, hash: string): Promise<Page> {
  const { page } = await openTab(url, { movesClock: true, expected: LOST });
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
  await showView(page, hash);
  await page.locator(".found").first().waitFor();
  await pass(page, 1);
  return page;
}

const lineOf = (page: Page, task: string) =>
  page.locator(".found-line", { has: page.getByText(task, { exact: true }) });
const boxOf = (page: Page, task: string) => lineOf(page, task).getByRole("checkbox");
const note = (page: Page) => page.getByRole("region", { name: "What became of them" });
const bar = (page: Page) => page.getByRole("group", { name: "Selected delegations" });

/** How many repeats of each failed one the broker has. */
async function repeats(api: Api, ids: readonly string[]): Promise<number[]> {
  const { body } = await api.call("GET", "/v1/delegations?state=submitted&limit=100");
  const of = body.delegations.map(({ redrive_of }: { redrive_of: string | null }) => redrive_of);
  return ids.map((id) => of.filter((one: string | null) => one === id).length);
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("a range, by mouse and by key; what is refused says why; what has changed leaves the selection", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const [gone = ""] = await fail(api, "gone", ["Gone"]);
    const ids = await fail(api, "coder", ["One", "Two", "Three"]);
    await api.delegate("coder", { task: "Live one" });
    const live = (await api.delegate("coder", { task: "Live two" })).body.id;
    await api.call("DELETE", "/v1/agents/gone");
    const page = await open(url, "#/find");
    // Newest first. The one that completed before has no box.
    await boxOf(page, "Three").click();
    await boxOf(page, "Gone").click({ modifiers: ["Shift"] });
    await bar(page).getByText("4 selected").waitFor();
    await lineOf(page, "Two").locator(".found").focus();
    await page.keyboard.press("x");
    await bar(page).getByText("3 selected").waitFor();
    await page.keyboard.press("k");
    await page.keyboard.press("k");
    await page.keyboard.press("x");
    await page.keyboard.press("k");
    await page.keyboard.press("Shift+X");
    await bar(page).getByText("5 selected").waitFor();
    const [again, cancel] = [
      bar(page).getByRole("button", { name: /^Try again \d/ }),
      bar(page).getByRole("button", { name: /^Cancel \d/ }),
    ];
    expect([await again.textContent(), await cancel.textContent()]).toEqual([
      "Try again 3",
      "Cancel 2 delegations",
    ]);
    const place = await again.boundingBox();
    // Somebody else cancels one: it is not selected any more, its row stays, and no button moves.
    await api.cancel(live);
    await bar(page).getByText("4 selected").waitFor();
    await lineOf(page, "Live two").getByText("canceled").waitFor();
    expect(await again.boundingBox()).toEqual(place);

    await cancel.click();
    const dialog = page.getByRole("dialog", { name: "Cancel 1 delegation?" });
    await dialog.getByText("everything delegated under them is canceled").waitFor();
    await dialog.getByRole("button", { name: "Keep as it is" }).click();
    await again.click();
    await note(page).getByText("2 tried again, 1 refused.").waitFor();
    await note(page).getByText("Their agent does not exist any more.").waitFor();
    expect(await note(page).getByRole("link", { name: "Gone" }).getAttribute("href")).toContain(gone);
    await lineOf(page, "One").getByText("failed, tried again, after").waitFor();
    await note(page).getByText("The new ones").click();
    expect(await note(page).locator("details a").allTextContents()).toEqual(
      expect.arrayContaining(["One", "Three"]),
    );
    expect(await repeats(api, ids)).toEqual([1, 0, 1]);
    // What was refused is still selected.
    await bar(page).getByText("2 selected").waitFor();

    await note(page).getByRole("button", { name: "Close" }).click();
    await cancel.click();
    await dialog.getByLabel("Reason").fill("not needed");
    await dialog.getByRole("button", { name: "Cancel 1 delegation" }).click();
    await note(page).getByText("1 canceled.").waitFor();
    await lineOf(page, "Live one").getByText("canceled").waitFor();
    // Another search has another selection.
    await page.getByLabel("State").selectOption("completed");
    await page.getByText("Nothing fits").waitFor();
    await page.getByLabel("State").selectOption("failed");
    await boxOf(page, "Gone").waitFor();
    expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(0);
  });

  test("it stops in the middle and goes on; a lost connection leaves no doubt about what was done", async () => {
    const { url } = await startBroker();
    const api = client(url);
    const ids = await fail(
      api,
      "coder",
      Array.from({ length: 60 }, (_, n) => `Task ${n}`),
    );
    const page = await open(url, "#/find?state=failed");
    await page.getByRole("checkbox", { name: "Select all 50 that" }).click();
    const lists = /\/v1\/delegations\?/;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    await page.route(lists, async (route) => {
      await released;
      await route.continue();
    });
    await bar(page).getByRole("button", { name: "Select all that match" }).click();
    await bar(page).getByRole("button", { name: "Reading …" }).waitFor();
    // How many it would be is not known yet.
    expect(await bar(page).getByRole("button", { name: "Try again 50" }).isDisabled()).toBe(true);
    // Who takes one out does not mean all.
    await boxOf(page, "Task 59").click();
    release();
    await bar(page).getByText("49 selected").waitFor();
    await page.unroute(lists);
    // The focus is in the box of a row.
    await page.keyboard.press("x");
    await bar(page).getByText("50 selected").waitFor();
    await page.getByRole("checkbox", { name: /^Select all/ }).click();
    await bar(page).getByText("60 selected").waitFor();

    const redrive = /\/redrive$/;
    const held: (() => void)[] = [];
    let isOpen = false;
    await page.route(redrive, async (route) => {
      if (!isOpen) await new Promise<void>((resolve) => held.push(resolve));
      await route.continue();
    });
    await bar(page).getByRole("button", { name: "Try again 60" }).click();
    await until(() => held.length === 3);
    await note(page).getByText("Trying again: 0 of 60").waitFor();
    await note(page).getByRole("button", { name: "Stop" }).click();
    isOpen = true;
    for (const release of held) release();
    await note(page).getByText("Stopped: 3 tried again, 57 not tried again.").waitFor();
    const done = async () => (await repeats(api, ids)).reduce((sum, one) => sum + one, 0);
    expect(await done()).toBe(3);

    // The broker takes the next three, and its answers are lost.
    await page.unroute(redrive);
    let lost = 0;
    await page.route(redrive, async (route) => {
      if (lost < 3) await route.fetch();
      lost += 1;
      await page.context().setOffline(true);
      await route.abort();
    });
    await note(page).getByRole("button", { name: "Go on with 57" }).click();
    await until(async () => {
      await pass(page, 1);
      const text = "The broker does not answer: 3 tried again, 54 not tried again, of 3 it is not known yet.";
      return note(page).getByText(text).isVisible();
    });
    await page.unroute(redrive);
    await page.context().setOffline(false);
    await until(async () => {
      await pass(page, 1);
      return note(page).getByText("6 tried again, 54 not tried again.").isVisible();
    });
    expect(await done()).toBe(6);
    await note(page).getByRole("button", { name: "Go on with 54" }).click();
    await note(page).getByText("60 tried again.").waitFor();
    expect(await repeats(api, ids)).toEqual(ids.map(() => 1));
  });
});
