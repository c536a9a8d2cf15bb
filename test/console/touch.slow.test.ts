/** The console by touch: a tap shows what was tapped, and nothing waits for a pointer that has left. Needs a build. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { client, OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { setCrowd } from "./scene.ts";

const TOUCH: BrowserContextOptions = {
  viewport: { width: 1024, height: 800 },
  hasTouch: true,
  isMobile: true,
};

async function signIn(page: Page, shown = ".row"): Promise<void> {
  await page.getByLabel("Token").fill(OPERATOR);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(shown).first().waitFor();
}

describe.skipIf(SKIP)("in Chromium", () => {
  test("a tap on a timeline or a chart shows what was tapped, and goes on showing it", async () => {
    const { url, clock } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const { id } = (await api.delegate("scout", { task: "Look around" })).body;
    clock.offset_ms += 30_000;
    await api.message(id, "Hurry");
    const { page } = await openTab(url, TOUCH);
    await signIn(page);
    const hasFocus = () => page.evaluate("document.activeElement?.getAttribute('role') === 'slider'");
    await showView(page, `#/live?tab=timeline&open=${id}`);
    await page.locator(".fall-bar.queued").tap();
    // The tap is over when the focus has moved.
    await until(() => page.evaluate("document.activeElement?.getAttribute('role') === 'row'"));
    await page.locator(".fall-note", { hasText: "queued · since 0:00" }).waitFor();

    await showView(page, "#/charts");
    const chart = page.getByRole("slider", { name: "Delegated: 1" });
    await chart.tap({ position: { x: 3, y: 60 } });
    await until(hasFocus);
    expect(await chart.getAttribute("aria-valuenow")).toBe("0");
    await page.locator(".chart-times b", { hasText: "delegated 0" }).waitFor();
  });

  test("on a phone, the view that came first stays when questions come and go", async () => {
    const { url } = await startBroker();
    const api = client(url);
    await api.agent("scout");
    const ask = async (text: string) => {
      const { id } = (await api.delegate("scout", { task: text })).body;
      const [{ lease_id }] = (await api.lease("scout")).body.leases;
      const { interrupt_id } = (await api.interrupt(lease_id, { text })).body;
      return { id, interrupt_id };
    };
    const { page } = await openTab(url, { ...TOUCH, viewport: { width: 390, height: 780 } });
    await signIn(page, "#live-title");
    await page.locator(".agent-row").waitFor();
    const first = await ask("Where to?");
    await page.getByRole("link", { name: "Needs you 1" }).waitFor();
    await page.locator("#live-title").waitFor();
    // Whoever comes then begins with it, and learns that somebody else answered.
    await page.reload();
    await page.locator("textarea").fill("To the north, because");
    await api.answer(first.id, first.interrupt_id, { text: "South" });
    await page.getByText("operator answered this").waitFor();
    expect(await page.locator("#live-title").count()).toBe(0);
  });

  test("the work of an agent keeps its places under a mouse, not where a screen was tapped last", async () => {
    const { url } = await startBroker();
    const api = client(url);
    for (const name of ["coder", "scout", "deployer", "nightly"]) await api.agent(name);
    await setCrowd(url, 40);
    const pages = { mouse: (await openTab(url)).page, touch: (await openTab(url, TOUCH)).page };
    const hovered = (page: Page) => page.locator(".agent-work .rows:hover .row").first();
    for (const page of Object.values(pages)) {
      await signIn(page, ".agent-row");
      await showView(page, "#/live?agent=coder");
      // What is read meanwhile may move it.
      await until(async () => {
        const box = await page.locator(".agent-work .row").first().boundingBox();
        await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 5);
        return hovered(page).isVisible();
      });
    }
    const before = await hovered(pages.mouse).getAttribute("data-row");
    const { body } = await api.lease("coder");
    for (const page of Object.values(pages))
      await page.getByRole("link", { name: /^coder: .*1 working/ }).waitFor();
    expect(await hovered(pages.mouse).getAttribute("data-row")).toBe(before);
    // Work in progress comes first.
    const first = pages.touch.locator(".agent-work .row").first();
    await expect.poll(() => first.getAttribute("data-row")).toBe(body.leases[0].delegation.id);
  });
});
