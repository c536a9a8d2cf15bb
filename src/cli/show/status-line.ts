/** A status line on the terminal during a wait. It appears after one second. */
import type { Writable } from "node:stream";
import { durationText, oneLine } from "./output.ts";

const FIRST_AFTER_MS = 1000;
const EVERY_MS = 1000;
const CLEAR = "\r\u001b[2K";

export class StatusLine {
  readonly #stream: Writable;
  readonly #startedAt = performance.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #text = "submitted";
  #drawn = false;

  constructor(stream: Writable) {
    this.#stream = stream;
    this.#timer = setInterval(() => this.#draw(), EVERY_MS);
  }

  get text(): string {
    return this.#text;
  }

  say(text: string): void {
    this.#text = text;
    if (performance.now() - this.#startedAt >= FIRST_AFTER_MS) this.#draw();
  }

  clear(): void {
    clearInterval(this.#timer);
    if (this.#drawn) this.#stream.write(CLEAR);
    this.#drawn = false;
  }

  #draw(): void {
    const columns = "columns" in this.#stream ? Number(this.#stream.columns) : 80;
    // Rounded, because a timer may fire a moment early.
    const seconds = Math.max(1, Math.round((performance.now() - this.#startedAt) / 1000));
    const elapsed = durationText(seconds * 1000).replace(".0 s", " s");
    this.#drawn = true;
    this.#stream.write(CLEAR + oneLine(`waiting ${elapsed}: ${this.#text}`, (columns || 80) - 1));
  }
}
