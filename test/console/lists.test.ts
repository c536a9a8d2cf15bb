/** The console's lists: rows that arrive while one is focused, many rows, and two gateways. Needs a build. */
import { describe, expect, test } from "vitest";
import { taskText } from "../../src/console/ui/words.ts";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setCrowd } from "./scene.ts";

test("a task that was cut ends with an ellipsis", () => {
  const shown = ["", "x".repeat(99), "x".repeat(100), "é".repeat(48), `${"é".repeat(48)}x`].map(
    (task_preview) => taskText({ task_preview }).slice(-3),
  );
  expect(shown).toEqual(["xt)", "xxx", "xx…", "ééé", "éx…"]);
});

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
    const rows = page.locator(".flight");
    await rows.first().focus();
    for (let n = 0; n < 3; n += 1) await client(second.url).delegate("scout", { task: `Later ${n}` });
    await page.getByRole("button", { name: "3 new" }).click();
    await rows.nth(3).waitFor();
    expect(await rows.first().textContent()).toContain("Later");

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
    await found.last().scrollIntoViewIfNeeded();
  });
});
