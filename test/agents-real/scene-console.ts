/** The person of the scene: the console in a real Chromium, with its sign-in, its question and its form. */
import { type Browser, chromium, type Locator, type Page } from "playwright-core";
import { CHROMIUM } from "../support/chromium.ts";
import { until } from "../support/until.ts";

const WINDOW = { width: 900, height: 620 };
const MARGIN = 24;
const PRESSED_MS = 1_000;

export class ConsoleOfPerson {
  readonly #browser: Browser;
  readonly #page: Page;

  private constructor(browser: Browser, page: Page) {
    this.#browser = browser;
    this.#page = page;
  }

  /** Opens the console and signs in with the token. */
  static async open(url: string, token: string): Promise<ConsoleOfPerson> {
    if (CHROMIUM === undefined) throw new Error("no Chromium in /usr/bin: apt-get install chromium");
    const browser = await chromium.launch({ executablePath: CHROMIUM, chromiumSandbox: false });
    const context = await browser.newContext({
      viewport: WINDOW,
      deviceScaleFactor: 2,
      colorScheme: "light",
    });
    // The scene moves the clock of the page as it moves that of the broker.
    await context.clock.install();
    const page = await context.newPage();
    await page.goto(url);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Live" }).waitFor();
    return new ConsoleOfPerson(browser, page);
  }

  #question(command: string): Locator {
    return this.#page.locator(".needs .question", { hasText: command });
  }

  /** Waits until the question is shown, and returns how much time is left to answer it. */
  async shows(command: string): Promise<string> {
    const card = this.#question(command);
    await card.getByText(command, { exact: true }).waitFor();
    return (await card.locator(".time-left").textContent()) ?? "";
  }

  async pass(seconds: number): Promise<void> {
    await this.#page.clock.fastForward(seconds * 1000);
  }

  /** Approves with another command, in the form of the question. */
  async approveEdited(command: string, edited: string): Promise<void> {
    const card = this.#question(command);
    await card.getByRole("button", { name: "Edit" }).click();
    const editor = card.getByLabel("Arguments of Bash");
    await editor.fill((await editor.inputValue()).replace(command, edited));
    const approve = card.getByRole("button", { name: "Approve" });
    const undo = card.getByRole("button", { name: "Undo" });
    // A button that has just moved ignores a click.
    await until(async () => {
      await approve.click({ timeout: PRESSED_MS });
      await undo.waitFor({ timeout: PRESSED_MS });
      return true;
    });
    await this.#page.locator(".needs .question.over", { hasText: "Approved" }).waitFor();
  }

  /** The question as the console shows it, in the width in which GitHub shows a picture. */
  async picture(path: string): Promise<void> {
    await this.#page.getByRole("link", { name: "Needs you" }).first().click();
    await this.#page.getByRole("heading", { name: "Live" }).waitFor({ state: "hidden" });
    await this.#page.evaluate(() => document.fonts.ready);
    const card = await this.#page.locator(".needs .question").boundingBox();
    const height = (card?.y ?? 0) + (card?.height ?? WINDOW.height) + MARGIN;
    await this.#page.screenshot({ path, clip: { x: 0, y: 0, width: WINDOW.width, height } });
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }
}
