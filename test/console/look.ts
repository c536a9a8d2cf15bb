/**
 * Pictures of every view, for a human to look at: light, dark, laptop and phone; empty, few and many. Not a test.
 * Usage: node --import tsx test/console/look.ts URL OPERATOR_TOKEN [--as-it-is] [NAME ...]
 * It fills a fresh broker; with --as-it-is it shows what the broker has. A NAME picks views, by their name or scene.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Page } from "playwright-core";
import { CHROMIUM } from "../support/chromium.ts";
import { answerSome, fillMany, waitForParts } from "./look-scenes.ts";
import { setScene } from "./scene.ts";

const OUT = fileURLToPath(new URL("../../.look/", import.meta.url));
const WIDE = { width: 1440, height: 900 };
const LAPTOP = { width: 1280, height: 720 };
const PHONE = { width: 390, height: 844 };
const LOOKS = [
  { name: "light", viewport: WIDE, colorScheme: "light" },
  { name: "dark", viewport: WIDE, colorScheme: "dark" },
  { name: "laptop", viewport: LAPTOP, colorScheme: "light" },
  { name: "phone", viewport: PHONE, colorScheme: "light", hasTouch: true, isMobile: true },
] as const;
/** A view's address, and what the reader does there. */
type View = string | readonly [hash: string, act: (page: Page) => Promise<unknown>];

const [url = "", token = "", ...rest] = process.argv.slice(2);
const isAsItIs = rest.includes("--as-it-is");
const only = rest.filter((name) => !name.startsWith("--"));
mkdirSync(OUT, { recursive: true });
const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", chromiumSandbox: false });

async function shoot(scene: string, views: Readonly<Record<string, View>>): Promise<void> {
  const wanted = Object.entries(views).filter(
    ([name]) => only.length === 0 || only.includes(name) || only.includes(scene),
  );
  for (const look of wanted.length > 0 ? LOOKS : []) {
    const { name: _, ...device } = look;
    const context = await browser.newContext(device);
    const page = await context.newPage();
    page.on("console", (message) => console.log(`${scene} ${look.name}: ${message.text()}`));
    page.on("pageerror", (error) => console.log(`${scene} ${look.name}: ${error.stack}`));
    if (scene === "empty") {
      await page.goto(`${url}/`);
      await page.getByRole("button", { name: "Sign in" }).waitFor();
      await page.screenshot({ path: join(OUT, `sign-in-${look.name}.png`) });
    }
    await page.addInitScript(
      (secret) => localStorage.setItem("errand-session", JSON.stringify({ id: "ses_look", token: secret })),
      token,
    );
    for (const [name, view] of wanted) {
      const [hash, act] = typeof view === "string" ? [view] : view;
      await page.goto(`${url}/${hash}`);
      await page.reload();
      await isDrawn(page);
      await act?.(page);
      await page.screenshot({ path: join(OUT, `${scene}-${name}-${look.name}.png`) });
    }
    await context.close();
  }
}

async function isDrawn(page: Page): Promise<void> {
  await page.locator("h1:visible").first().waitFor();
  await page.waitForFunction(
    () =>
      document.querySelector(".loading") === null &&
      !document.querySelector("#live-title small")?.textContent?.includes("so far"),
  );
  await page.waitForTimeout(1200);
}

const toEnd = (page: Page) =>
  page.evaluate(() => {
    for (const column of document.querySelectorAll(".column")) column.scrollTop = column.scrollHeight;
    scrollTo(0, document.body.scrollHeight);
  });
const toSettings = (page: Page) =>
  page.getByRole("heading", { name: "Settings" }).evaluate((heading) => heading.scrollIntoView());
const selectTwo = async (page: Page) => {
  for (const n of [0, 1]) await page.locator(".found-line input").nth(n).check();
};

const openPalette = async (page: Page) => {
  await page.keyboard.press("Control+K");
  await page.locator(".palette [role=option]").first().waitFor();
};

const VIEWS = {
  live: "#/live",
  needs: "#/needs",
  answered: "#/answered",
  find: "#/find",
  agents: "#/agents",
  tokens: "#/agents?part=tokens",
  log: "#/agents?part=log",
  charts: "#/charts",
  delegate: "#/delegate",
} satisfies Record<string, View>;
const agentViews = (name: string) =>
  ({
    agent: `#/agents?name=${name}`,
    settings: [`#/agents?name=${name}`, toSettings],
    "agent-end": [`#/agents?name=${name}`, toEnd],
    palette: ["#/live", openPalette],
  }) satisfies Record<string, View>;

/** What a broker has: its views, and one delegation in every state. */
async function asItIs(): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const read = async (path: string) => (await fetch(`${url}/v1/${path}`, { headers })).json();
  const opened: Record<string, View> = {};
  for (const state of [
    "submitted",
    "working",
    "input_required",
    "awaiting_children",
    "completed",
    "failed",
    "canceled",
  ]) {
    const [one] = (await read(`delegations?limit=1&state=${state}`)).delegations;
    if (one) opened[state.replace("_", "-")] = `#/live?open=${one.id}`;
  }
  const { agents } = await read("agents");
  await shoot("day", { ...VIEWS, ...agentViews(agents[0].name), ...opened });
}

async function fillAndShoot(): Promise<void> {
  await shoot("empty", VIEWS);
  const { api, ids } = await setScene(url, token);
  await answerSome(api);
  const waits = await waitForParts(api);
  await shoot("few", {
    ...VIEWS,
    ...agentViews("coder"),
    working: `#/live?open=${ids.working}`,
    asking: `#/live?open=${ids.asking}`,
    queued: `#/live?open=${ids.queued}`,
    completed: `#/live?open=${ids.completed}`,
    failed: `#/live?open=${ids.failed}`,
    canceled: `#/live?open=${ids.canceled}`,
    files: `#/live?tab=files&open=${ids.completed}`,
    timeline: `#/live?tab=timeline&open=${ids.working}`,
    awaiting: `#/live?open=${waits}`,
    "awaiting-timeline": `#/live?tab=timeline&open=${waits}`,
    raw: `#/live?tab=raw&open=${ids.working}`,
  });
  const talk = await fillMany(api, url, token);
  await shoot("many", {
    ...VIEWS,
    find: "#/find?state=live",
    selected: ["#/find", selectTwo],
    agent: "#/agents?name=coder",
    conversation: `#/live?open=${talk}`,
    files: `#/live?tab=files&open=${talk}`,
    timeline: `#/live?tab=timeline&open=${talk}`,
  });
}

await (isAsItIs ? asItIs() : fillAndShoot());
await browser.close();
