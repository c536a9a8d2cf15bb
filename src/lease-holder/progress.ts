/** Sends at most two progress updates a second, one at a time; of those in between, only the latest. */
import type { Progress } from "../schema/delegation.ts";

const EVERY_MS = 500;

export class ProgressThrottle {
  readonly #send: (progress: Progress) => Promise<unknown>;
  #next: Progress | undefined;
  #sending: Promise<void> | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  /** `send` must not reject. */
  constructor(send: (progress: Progress) => Promise<unknown>) {
    this.#send = send;
  }

  /** Returns at once. */
  push(progress: Progress): void {
    if (this.#stopped) return;
    this.#next = progress;
    if (this.#sending || this.#timer !== undefined) return;
    const dueInMs = this.#sentAt + EVERY_MS - performance.now();
    if (dueInMs <= 0) this.#flush();
    else this.#timer = setTimeout(() => this.#flush(), dueInMs);
  }

  /** Drops the update that waits; resolves once the one in flight has arrived. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#next = undefined;
    clearTimeout(this.#timer);
    await this.#sending;
  }

  #flush(): void {
    const progress = this.#next;
    this.#timer = undefined;
    this.#next = undefined;
    if (!progress) return;
    this.#sentAt = performance.now();
    this.#sending = this.#send(progress).then(() => {
      this.#sending = undefined;
      if (this.#next) this.push(this.#next);
    });
  }
}
