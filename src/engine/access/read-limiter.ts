/**
 * Gives each principal its turns for large reads: lists, and pages of events and results. Each principal runs a few at
 * once, and all principals together a few more, so that no principal delays the others. Limit: per process; the caller
 * bounds the bytes of a read.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "./access.ts";

const PER_PRINCIPAL = LIMITS.reads.value;
const IN_TOTAL = 3 * PER_PRINCIPAL;

interface Queue {
  running: number;
  readonly waiting: (() => void)[];
}

export class ReadLimiter {
  /** The principal that has waited longest for a turn is first. */
  readonly #queues = new Map<string, Queue>();
  #running = 0;

  /** Waits for the principal's turn. Resolves to a function that ends the turn, and that may be called twice. */
  async acquire({ text }: Pick<Principal, "text">): Promise<() => void> {
    const queue = this.#queues.get(text) ?? { running: 0, waiting: [] };
    this.#queues.set(text, queue);
    if (this.#running >= IN_TOTAL || queue.running >= PER_PRINCIPAL) {
      const limit = LIMITS.reads_waiting.value;
      if (queue.waiting.length >= limit) {
        throw new ErrandError(
          "quota_exceeded",
          `${text} has too many reads waiting; the limit is ${limit}.`,
          {
            retry_after_seconds: 5,
            details: { quota: "reads_waiting", limit },
          },
        );
      }
      await new Promise<void>((resolve) => queue.waiting.push(resolve));
    } else {
      this.#running += 1;
      queue.running += 1;
    }
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#end(text, queue);
    };
  }

  /** Runs the work in a turn of the principal. */
  async run<T>(principal: Pick<Principal, "text">, work: () => Promise<T>): Promise<T> {
    const end = await this.acquire(principal);
    try {
      return await work();
    } finally {
      end();
    }
  }

  #end(text: string, queue: Queue): void {
    this.#running -= 1;
    queue.running -= 1;
    if (queue.running === 0 && queue.waiting.length === 0) this.#queues.delete(text);
    for (const [name, next] of this.#queues) {
      if (next.running >= PER_PRINCIPAL) continue;
      const begin = next.waiting.shift();
      if (!begin) continue;
      this.#running += 1;
      next.running += 1;
      // Move the principal to the end of the order.
      this.#queues.delete(name);
      this.#queues.set(name, next);
      begin();
      return;
    }
  }
}
