/**
 * Sends follow-ups to the remote task, one by one, in order, once each. Limit: a follow-up that a killed run sent but did
 * not count is sent again, unless the task's history contains it.
 */
import type { Message } from "../schema/a2a.ts";

export interface FollowUpSenderOptions {
  /** How many follow-ups earlier runs have sent. */
  readonly sent: number;
  readonly send: (message: Message) => Promise<void>;
  /** Called after each follow-up that was sent. */
  readonly onSent: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export class FollowUpSender {
  readonly #options: FollowUpSenderOptions;
  readonly #waiting: Message[] = [];
  readonly #known = new Set<string>();
  #skip: number;
  #begun = false;
  #ended = false;
  #sending = false;

  constructor(options: FollowUpSenderOptions) {
    this.#options = options;
    this.#skip = options.sent;
  }

  add(message: Message): void {
    if (this.#skip > 0) this.#skip -= 1;
    else this.#waiting.push(message);
    void this.#sendWaiting();
  }

  /** Starts sending, once the task exists. Skips messages that its history contains. */
  begin(history: readonly Message[]): void {
    for (const { messageId, role } of history) if (role === "ROLE_USER") this.#known.add(messageId);
    this.#begun = true;
    void this.#sendWaiting();
  }

  end(): void {
    this.#ended = true;
  }

  async #sendWaiting(): Promise<void> {
    if (this.#sending || !this.#begun) return;
    this.#sending = true;
    try {
      for (let next = this.#waiting.shift(); next && !this.#ended; next = this.#waiting.shift()) {
        if (!this.#known.has(next.messageId)) await this.#options.send(next);
        await this.#options.onSent();
      }
    } catch (error) {
      if (!this.#ended) this.#options.onError(error);
    } finally {
      this.#sending = false;
    }
  }
}
