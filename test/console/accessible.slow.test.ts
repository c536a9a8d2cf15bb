/** axe-core finds no fault in any view of the console, light or dark. Needs a build. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { OPERATOR, startBroker } from "../support/broker.ts";
import { openTab, SKIP, showView } from "../support/browser.ts";
import { setScene } from "./scene.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Dark differs from light in its colours alone. */
const RULES = { light: "", dark: `, runOnly: ["color-contrast"]` } as const;

/** The faults of the view that is shown, in both themes. */
async function faults(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`[data-theme=${colorScheme}]`).waitFor();
    found.push(...(await faultsNow(page, colorScheme)).map((fault) => `${colorScheme}: ${fault}`));
  }
  return found;
}

/** Fields and bars whose edge has a contrast below 3:1 (WCAG 1.4.11). axe has no rule for it. */
const faintEdges = (page: Page) =>
  page
    .locator(":is(input:not([type=file]), select, textarea, progress, .time-left .bar):visible")
    .evaluateAll((all) => {
      const luminance = (color: string): number =>
        [...color.matchAll(/[\d.]+/g)]
          .slice(0, 3)
          .map(([part]) => Number(part) / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
          .reduce((sum, part, index) => sum + part * ([0.2126, 0.7152, 0.0722][index] ?? 0), 0);
      const behind = (element: Element | null): string => {
        const color = element ? getComputedStyle(element).backgroundColor : "rgb(255, 255, 255)";
        return element && /, 0\)$/.test(color) ? behind(element.parentElement) : color;
      };
      return all
        .filter((one) => {
          const { borderTopColor, borderTopWidth } = getComputedStyle(one);
          const pair = [luminance(borderTopColor), luminance(behind(one.parentElement))];
          const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
          return borderTopWidth === "0px" || ratio < 3;
        })
        .map((one) => `faint edge ${one.outerHTML}`);
    });

async function faultsNow(page: Page, colors: keyof typeof RULES): Promise<string[]> {
  return [...(await axeFaults(page, colors)), ...(await faintEdges(page))];
}

async function axeFaults(page: Page, colors: keyof typeof RULES): Promise<string[]> {
  const result =
    await page.evaluate(`axe.run(document, { resultTypes: ["violations"]${RULES[colors]} }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + " " + html + " " + failureSummary)))`);
  return Array.isArray(result) ? result.map(String) : ["axe did not run"];
}

/** The views that have something to say when there is nothing to show. */
const EMPTY = {
  live: "#/live",
  needs: "#/needs",
  answered: "#/answered",
  find: "#/find",
  agents: "#/agents",
  charts: "#/charts",
  delegate: "#/delegate",
  log: "#/agents?part=log",
};

describe.skipIf(SKIP)("in Chromium", () => {
  test("every view, light and dark, with and without content", async () => {
    const { url } = await startBroker();
    // The policy of the page would not let axe in; the other tests run under it.
    const { page } = await openTab("about:blank", { bypassCSP: true, expected: /Failed to load resource/ });
    await page.goto(url);
    await page.getByLabel("Token").waitFor();
    await page.evaluate(AXE);
    const found: Record<string, string[]> = { "sign-in": await faults(page) };
    await page.getByLabel("Token").fill("errand_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    found["sign-in refused"] = await faults(page);
    await page.getByLabel("Token").fill(OPERATOR);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
    for (const [name, hash] of Object.entries(EMPTY)) {
      await showView(page, hash);
      found[`empty ${name}`] = await faults(page);
    }
    const { ids, api } = await setScene(url);
    const { interrupt } = (await api.get(ids.options ?? "")).body;
    await api.answer(ids.options ?? "", interrupt.id, { text: "Both" });
    await showView(page, "#/live");
    await page.locator(".row").first().waitFor();
    await page.locator(".agent-row").first().waitFor();
    const views = {
      live: "#/live",
      needs: "#/needs",
      answered: "#/answered",
      find: "#/find",
      agents: "#/agents",
      agent: "#/agents?name=coder",
      tokens: "#/agents?part=tokens",
      log: "#/agents?part=log",
      schedules: "#/agents?part=schedules",
      rules: "#/agents?part=rules",
      notifications: "#/agents?part=notifications",
      charts: "#/charts",
      delegate: "#/delegate",
      conversation: `#/live?open=${ids.asking}`,
      timeline: `#/live?open=${ids.working}&tab=timeline`,
      files: `#/live?open=${ids.completed}&tab=files&wide=yes`,
      raw: `#/live?open=${ids.failed}&tab=raw`,
    };
    for (const [name, hash] of Object.entries(views)) {
      await showView(page, hash);
      found[name] = await faults(page);
    }
    const deploys = page.locator(".needs .question", { hasText: "2.4.1" });
    await deploys.getByRole("button", { name: "Edit" }).click();
    await deploys.getByLabel("hosts").fill("3");
    await deploys.getByLabel("version").fill("");
    found.editor = await faults(page);
    await showView(page, `#/live?open=${ids.working}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor();
    found.dialog = await faults(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.locator(".palette [aria-selected=true]").waitFor();
    found.palette = await faults(page);
    await page.keyboard.press("Escape");
    // On a phone, an open delegation takes the place of the view.
    await page.setViewportSize({ width: 390, height: 844 });
    for (const name of ["live", "needs", "agent", "conversation", "timeline"] as const) {
      await showView(page, views[name]);
      found[`${name} on a phone`] = await faults(page);
    }
    expect(Object.entries(found).flatMap(([view, list]) => list.map((fault) => `${view}: ${fault}`))).toEqual(
      [],
    );
  });
});
