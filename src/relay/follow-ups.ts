/**
 * What is said to the agent while it works, passed on one by one, in order, once each. Limit: what a killed run had sent
 * and not yet counted is sent again, unless the task's history has it.
 */
import type { Message } from "../schema/a2a.ts";

export interface FollowUpsOptions {
  /** How many were passed on by earlier runs. */
  readonly said: number;
  readonly say: (message: Message) => Promise<void>;
  /** One more was passed on. */
  readonly count: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export class FollowUps {
  readonly #options: FollowUpsOptions;
  readonly #waiting: Message[] = [];
  readonly #known = new Set<string>();
  #skip: number;
  #begun = false;
  #ended = false;
  #saying = false;

  constructor(options: FollowUpsOptions) {
    this.#options = options;
    this.#skip = options.said;
  }

  add(message: Message): void {
    if (this.#skip > 0) this.#skip -= 1;
    else this.#waiting.push(message);
    void this.#pump();
  }

  /** The task is there; its history tells what it has heard. */
  begin(history: readonly Message[]): void {
    for (const { messageId, role } of history) if (role === "ROLE_USER") this.#known.add(messageId);
    this.#begun = true;
    void this.#pump();
  }

  end(): void {
    this.#ended = true;
  }

  async #pump(): Promise<void> {
    if (this.#saying || !this.#begun) return;
    this.#saying = true;
    try {
      for (let next = this.#waiting.shift(); next && !this.#ended; next = this.#waiting.shift()) {
        if (!this.#known.has(next.messageId)) await this.#options.say(next);
        await this.#options.count();
      }
    } catch (error) {
      if (!this.#ended) this.#options.onError(error);
    } finally {
      this.#saying = false;
    }
  }
}
