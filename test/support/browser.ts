/**
 * Debian's Chromium for tests: one for all tests of a worker, and a context (cookies, storage) of its own for each test.
 * Without a browser the tests are skipped, but never in CI.
 */
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { CHROMIUM } from "./chromium.ts";
import { until } from "./until.ts";

/** In CI a missing browser is a failure. */
export const SKIP = CHROMIUM === undefined && process.env.CI !== "true";

/** Only the pages that the test serves. */
const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP *.test 127.0.0.1",
];

let browser: Promise<Browser> | undefined;

async function launch(): Promise<Browser> {
  if (CHROMIUM === undefined) throw new Error("no Chromium in /usr/bin: apt-get install chromium");
  return chromium.launch({ executablePath: CHROMIUM, chromiumSandbox: false, args: FLAGS });
}

/** It ends with the worker. */
export function sharedBrowser(): Promise<Browser> {
  browser ??= launch();
  return browser;
}

export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Messages that the console of a healthy page does not have. */
  readonly complaints: string[];
}

export interface TabOptions extends BrowserContextOptions {
  /** Messages of the console that are no complaints. */
  readonly expected?: RegExp;
  /** `pass` moves the timers of the page. */
  readonly movesClock?: boolean;
  /** The reader does not press again what ignored a click because it had just moved. */
  readonly pressesOnce?: boolean;
}

/** A page, whose test fails if the page complains: an error, a warning, a violated policy. */
export async function openTab(url: string, options: TabOptions = {}): Promise<Tab> {
  const { expected, movesClock = false, pressesOnce = false, ...rest } = options;
  const context = await (await sharedBrowser()).newContext({
    viewport: { width: 1280, height: 800 },
    ...rest,
  });
  if (movesClock) await context.clock.install();
  if (!pressesOnce) await context.addInitScript(pressAgain);
  const complaints: string[] = [];
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  watchFor(page, complaints, expected);
  onTestFinished(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });
  await page.goto(url);
  return { page, context, complaints };
}

/** Runs in the page: does as it says when it ignored a click: looks again, then presses. */
function pressAgain(): void {
  let pressed: EventTarget | null = null;
  addEventListener("pointerdown", ({ target }) => (pressed = target), true);
  new MutationObserver((changes) => {
    const added = changes.flatMap(({ addedNodes }) => [...addedNodes]);
    if (!added.some((one) => one instanceof Element && one.matches(".moved"))) return;
    const click = new MouseEvent("click", { bubbles: true, cancelable: true });
    const target = pressed;
    setTimeout(() => target?.dispatchEvent(click), 600);
  }).observe(document, { childList: true, subtree: true });
}

/** Checks a box, or unchecks it. Unlike Playwright's `check`, it waits for the second press if the first one was ignored. */
export async function tick(box: Locator, isWanted = true): Promise<void> {
  if ((await box.isChecked()) !== isWanted) await box.click();
  await until(async () => (await box.isChecked()) === isWanted);
}

/** Lets the timers of the page pass, for a tab with `movesClock`: nobody has to wait for them. */
export async function pass(page: Page, seconds: number): Promise<void> {
  await page.clock.fastForward(seconds * 1000);
}

/**
 * Stops the clock of a tab with `movesClock`: an answer waits for its Undo however long a busy machine takes. `pass` moves
 * it on, and `page.clock.resume` starts it again.
 */
export async function stopClock(page: Page): Promise<void> {
  // Not sooner: the clock goes on until the page hears of it, and cannot be stopped in its past.
  await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 10_000);
}

/** Shows a view of the console by its fragment, and waits until it has what it reads. */
export async function showView(page: Page, hash: string): Promise<void> {
  // The page draws it when it hears of it. Until then, all that is there belongs to the view before.
  await page.evaluate(
    (to) =>
      new Promise<void>((resolve) => {
        const before = location.href;
        addEventListener("hashchange", () => resolve(), { once: true });
        location.hash = to;
        if (location.href === before) resolve();
      }),
    hash,
  );
  await page.locator("h1:visible").first().waitFor();
  await page.waitForFunction(
    (to) => location.hash === to && document.querySelector(".loading") === null,
    await page.evaluate("location.hash"),
  );
}

/** Holds back the answers to the page's requests for matching addresses until `release` is called. */
export async function holdBack(page: Page, address: RegExp): Promise<{ release: () => void }> {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(address, async (route) => {
    const response = await route.fetch();
    await released;
    await route.fulfill({ response });
  });
  return { release };
}

/** What sticks out at the side: the page or one of its columns would scroll sideways. */
export function widerThanWindow(page: Page): Promise<string[]> {
  return page
    .locator(":is(html, .column, .header, .phone-bar):visible")
    .evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.className || one.tagName),
    );
}

function watchFor(page: Page, complaints: string[], expected?: RegExp): void {
  const add = (text: string) => {
    if (!expected?.test(text)) complaints.push(text);
  };
  page.on("pageerror", (error) => add(`uncaught: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) add(`${message.type()}: ${message.text()}`);
  });
}
