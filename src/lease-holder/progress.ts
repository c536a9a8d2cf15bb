/** Sends at most two updates a second, one at a time; of those in between, only the latest progress and usage. */
import type { Progress } from "../schema/delegation.ts";
import type { UsageReport } from "../schema/usage.ts";

export interface Update {
  readonly progress?: Progress | undefined;
  readonly usage?: UsageReport | undefined;
}

const EVERY_MS = 500;

export class UpdateThrottle {
  readonly #send: (update: Update) => Promise<unknown>;
  #next: Update | undefined;
  #sending: Promise<void> | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  /** `send` must not reject. */
  constructor(send: (update: Update) => Promise<unknown>) {
    this.#send = send;
  }

  /** Returns at once. */
  push(update: Update): void {
    if (this.#stopped) return;
    this.#next = { ...this.#next, ...update };
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
    const update = this.#next;
    this.#timer = undefined;
    this.#next = undefined;
    if (!update) return;
    this.#sentAt = performance.now();
    this.#sending = this.#send(update).then(() => {
      this.#sending = undefined;
      if (this.#next) this.push(this.#next);
    });
  }
}
