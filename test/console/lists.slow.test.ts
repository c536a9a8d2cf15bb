/** The console's lists: rows that arrive while one is focused, many rows, and two gateways. Needs a build. */
import { describe, expect, test } from "vitest";
import { nameOf, taskText } from "../../src/console/ui/words.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { holdBack, openTab, SKIP, showView, widerThanWindow } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setCrowd } from "./scene.ts";

test("a task that was cut ends with an ellipsis", () => {
  const shown = ["", "x".repeat(99), "x".repeat(100), "é".repeat(48), `${"é".repeat(48)}x`].map(
    (task_preview) => taskText({ task_preview }).slice(-3),
  );
  expect(shown).toEqual(["xt)", "xxx", "xx…", "ééé", "éx…"]);
});

test("principals of two kinds with the same name are told apart", () => {
  expect(["caller:ann", "approver:ann", "agent:ann", "operator"].map(nameOf)).toEqual([
    "ann",
    "approver ann",
    "agent ann",
    "operator",
  ]);
});

/** A row's task, without its age and state. */
const taskOf = (row: string | null): string => /^.*?\(\d+\)|^Meanwhile/.exec(row ?? "")?.[0] ?? "no task";

describe.skipIf(SKIP)("in Chromium", () => {
  test("new rows wait while one is focused, those of another gateway too; a long list draws only what is in view", async () => {
    const { url, another } = await startBroker();
    const second = await another();
    const api = client(url);
    await api.agent("scout");
    await api.delegate("scout", { task: "The first" });
    const { page } = await openTab(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    const rows = page.locator(".row");
    await rows.first().focus();
    for (let n = 0; n < 3; n += 1) await client(second.url).delegate("scout", { task: `Later ${n}` });
    await page.getByRole("button", { name: "3 new" }).click();
    await rows.nth(3).waitFor();
    // The oldest comes first.
    expect(await rows.first().textContent()).toContain("The first");

    for (const name of ["coder", "deployer", "nightly"]) await api.agent(name);
    await setCrowd(url, 300);
    await showView(page, "#/find?state=live");
    const found = page.locator(".found");
    await found.first().waitFor();
    const size = async () =>
      Number(await page.locator("li[aria-setsize]", { has: found }).first().getAttribute("aria-setsize"));
    await until(async () => {
      const more = page.locator("main button.more:enabled");
      if ((await more.count()) > 0) await more.click();
      return (await size()) > 200;
    });
    // It first draws some, and then measures which are in view.
    await until(async () => (await found.count()) < 150);
    // The last one that is drawn changes with what is in view.
    await until(async () => {
      await found.last().scrollIntoViewIfNeeded({ timeout: 1_000 });
      return true;
    });
  });

  test("an agent whose workers are all busy is not green, and one without workers is an alarm, in every view", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (const name of ["scout", "archivist"]) await api.agent(name);
    for (const name of ["scout", "scout", "scout", "archivist"]) await api.delegate(name);
    await api.lease("scout");
    const { page } = await openTab(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    for (const [view, sign, text] of [
      ["#/live", "busy", "all busy (1 working)"],
      ["#/live", "alarm", "no worker"],
      ["#/agents", "busy", "all busy (1 working)"],
      ["#/agents?name=scout", "busy", "all busy (1 working), 2 wait"],
      ["#/delegate", "alarm", "no worker, 1 waits"],
    ] as const) {
      await showView(page, view);
      if (view.startsWith("#/delegate")) await page.getByLabel("Agent", { exact: true }).fill("archivist");
      const presence = page.locator(`main .presence.${sign}`, { hasText: text });
      await presence.waitFor();
      const color = await presence.evaluate((one) => getComputedStyle(one).color);
      expect(color).toBe(sign === "busy" ? "rgb(146, 64, 14)" : "rgb(185, 28, 28)");
    }
    // The field to search in stays wide enough beside an open delegation.
    const id = (await api.delegate("scout")).body.id;
    for (const width of [1440, 1280, 1024, 834, 390]) {
      await page.setViewportSize({ width, height: 800 });
      for (const hash of width < 800 ? ["#/find"] : [`#/find?open=${id}`, "#/find"]) {
        await showView(page, hash);
        const field = async () => (await page.locator(".filter input[name=q]").boundingBox())?.width ?? 200;
        // The page lays itself out anew once it knows its size.
        await expect.poll(field, { message: `${width} ${hash}` }).toBeGreaterThanOrEqual(200);
        await expect.poll(() => widerThanWindow(page)).toEqual([]);
      }
    }
  });

  test("questions are there before the rest of a long list; then what is in progress, and by agent why the rest waits", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    await api.delegate("scout", { task: "The oldest" });
    const [{ lease_id: lease }] = (await api.lease("scout")).body.leases;
    await api.interrupt(lease, { text: "May I?" });
    await api.delegate("scout", { task: "In progress" });
    await api.lease("scout");
    for (const name of ["coder", "deployer", "nightly"]) await api.agent(name);
    await setCrowd(url, 160);
    await api.call("POST", "/v1/agents/scout/pause");
    const { page } = await openTab("about:blank");
    const lists = await holdBack(page, /\/v1\/delegations\?.*submitted/);
    await page.goto(url);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".question", { hasText: "The oldest" }).waitFor();
    await page.locator("h1", { hasText: "2 delegations so far" }).waitFor();
    // The list that is on its way does not have it.
    await api.delegate("coder", { task: "Meanwhile" });
    await page.locator("h1", { hasText: "3 delegations so far" }).waitFor();
    lists.release();
    await page.locator("h1", { hasText: "163 delegations: 1 working, 1 asking, 161 queued" }).waitFor();
    await page.getByRole("link", { name: "1 asks: see Needs you" }).waitFor();
    await page.locator(".row", { hasText: /In progress.*working/ }).waitFor();
    const queues = page.locator(".queue-line");
    const texts = async () => (await queues.allTextContents()).map((text) => text.replace(/oldest.*/, ""));
    await expect
      .poll(texts)
      .toEqual([
        "41 wait in coderno worker",
        "40 wait in scoutpaused",
        "40 wait in deployerno worker",
        "40 wait in nightlyno worker",
      ]);
    // The agents that need somebody come first; the work of one opens below it, and its address can be kept.
    await page.locator('.agent-row[data-row="scout"]').click();
    const own = page.locator(".agent-work .row");
    await own.nth(9).waitFor();
    expect(
      (await own.allTextContents()).map((row) => /working|asks a question: May I|queued/.exec(row)?.[0]),
    ).toEqual(["asks a question: May I", "working", ...Array.from({ length: 8 }, () => "queued")]);
    expect(page.url()).toMatch(/#\/live\?agent=scout$/);
    await page.getByText("32 more").waitFor();
    await page.locator('.agent-row[data-row="scout"]').click();
    await own.first().waitFor({ state: "detached" });
    // While a row of the queue is used, it keeps its place: what begins above it waits.
    await queues.first().click();
    const coder = page.locator(".agent-work .row");
    await page.getByText("36 more").waitFor();
    const first = await coder.first().textContent();
    await coder.first().focus();
    const top = (await coder.first().boundingBox())?.y;
    await api.delegate("coder", { task: "Urgent", priority: 9 });
    await api.lease("coder");
    await page.getByRole("heading", { name: "In progress 2" }).waitFor();
    await page.getByRole("button", { name: "1 new delegation", exact: true }).first().waitFor();
    expect(await coder.first().textContent()).toContain(taskOf(first));
    expect((await coder.first().boundingBox())?.y).toBe(top);
    expect(await coder.first().evaluate((row) => row === document.activeElement)).toBe(true);
    await page.locator("#live-title").click();
    await page.evaluate("document.activeElement?.blur()");
    await page.locator(".row", { hasText: "Urgent" }).waitFor();
  });
});
