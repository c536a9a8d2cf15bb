/** A line on the terminal that is replaced as a wait goes on. */
import type { Writable } from "node:stream";

const FIRST_AFTER_MS = 1000;
const EVERY_MS = 1000;
const CLEAR = "\r\u001b[2K";

/** The text for a line of this many columns. `elapsedMs` is the time since the line was made. */
export type StatusText = (elapsedMs: number, columns: number) => string;

export class StatusLine {
  readonly #stream: Writable;
  readonly #startedAt = performance.now();
  #timer: ReturnType<typeof setInterval> | undefined;
  #text: StatusText | undefined;
  #drawn = false;

  constructor(stream: Writable) {
    this.#stream = stream;
    this.resume();
  }

  /** Replaces the text. It appears after the first second, or at once. */
  say(text: StatusText, atOnce = false): void {
    this.#text = text;
    if (atOnce || this.#drawn || performance.now() - this.#startedAt >= FIRST_AFTER_MS) this.#draw();
  }

  /** Removes the line, until {@link resume}. */
  pause(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#drawn) this.#stream.write(CLEAR);
    this.#drawn = false;
  }

  resume(): void {
    this.#timer ??= setInterval(() => this.#draw(), EVERY_MS);
  }

  #draw(): void {
    if (this.#text === undefined || this.#timer === undefined) return;
    const columns = ("columns" in this.#stream && Number(this.#stream.columns)) || 80;
    this.#drawn = true;
    // A line as wide as the terminal would wrap on some of them.
    this.#stream.write(CLEAR + this.#text(performance.now() - this.#startedAt, columns - 1));
  }
}
