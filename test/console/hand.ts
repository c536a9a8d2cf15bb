/** The hand of a reader: it counts what it does, and does nothing that a reader cannot do. */
import type { Locator, Page } from "playwright-core";

export class Hand {
  clicks = 0;
  keys = 0;
  typed = 0;
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async click(place: Locator): Promise<void> {
    this.clicks += 1;
    await this.#look(place);
    await place.click();
  }

  async tap(place: Locator): Promise<void> {
    this.clicks += 1;
    await this.#look(place);
    await place.tap();
  }

  /** What has just come to its place ignores a click; a reader looks before. */
  async #look(place: Locator): Promise<void> {
    await place.scrollIntoViewIfNeeded();
    await this.page.waitForTimeout(700);
  }

  async press(key: string): Promise<void> {
    this.keys += 1;
    await this.page.keyboard.press(key);
  }

  /** Into a field that has the focus, or that a click gives it. A choice in a list counts as a field. */
  async type(place: Locator, text: string): Promise<void> {
    this.typed += 1;
    await place.fill(text);
  }

  async choose(place: Locator, value: string): Promise<void> {
    this.clicks += 1;
    await place.selectOption(value);
  }

  /** `2 clicks, 1 field`. */
  get done(): string {
    const words = [
      [this.clicks, "click"],
      [this.keys, "key"],
      [this.typed, "field"],
    ] as const;
    const parts = words.filter(([number]) => number > 0).map(([number, word]) => plural(number, word));
    return parts.join(", ") || "nothing";
  }

  get actions(): number {
    return this.clicks + this.keys + this.typed;
  }
}

const plural = (number: number, word: string): string => `${number} ${word}${number === 1 ? "" : "s"}`;
