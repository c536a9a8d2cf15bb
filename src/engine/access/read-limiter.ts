/**
 * Gives each principal its turns for large reads: lists, and pages of events and results. Each principal runs a few at
 * once, and all principals together a few more, so that no principal delays the others. Limit: per process; the caller
 * bounds the bytes of a read.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { AbortListener, StopSignal } from "../../util/stop-signal.ts";
import type { Principal } from "./access.ts";

const PER_PRINCIPAL = LIMITS.reads.value;
const IN_TOTAL = 3 * PER_PRINCIPAL;

interface Queue {
  running: number;
  readonly waiting: Set<() => void>;
}

export class ReadLimiter {
  /** The principal that has waited longest for a turn is first. */
  readonly #queues = new Map<string, Queue>();
  #running = 0;

  /** Waits for the principal's turn. Resolves to a function that ends the turn, and that may be called twice. */
  async acquire({ text }: Pick<Principal, "text">): Promise<() => void> {
    const queue = this.#queues.get(text) ?? { running: 0, waiting: new Set<() => void>() };
    this.#queues.set(text, queue);
    if (this.#mustWait(queue)) {
      const limit = LIMITS.reads_waiting.value;
      if (queue.waiting.size >= limit) {
        throw new ErrandError(
          "quota_exceeded",
          `${text} has too many reads waiting; the limit is ${limit}.`,
          {
            retry_after_seconds: 5,
            details: { quota: "reads_waiting", limit },
          },
        );
      }
      await new Promise<void>((resolve) => queue.waiting.add(resolve));
    } else {
      this.#running += 1;
      queue.running += 1;
    }
    return this.#turn(text, queue);
  }

  /**
   * The same for a stream, whose number has a limit of its own: none is refused. When the reader leaves it waits no longer,
   * and gets a turn that is none.
   */
  async acquireWhile({ text }: Pick<Principal, "text">, signal: StopSignal): Promise<() => void> {
    if (signal.aborted) return () => {};
    const queue = this.#queues.get(text) ?? { running: 0, waiting: new Set<() => void>() };
    this.#queues.set(text, queue);
    if (!this.#mustWait(queue)) {
      this.#running += 1;
      queue.running += 1;
      return this.#turn(text, queue);
    }
    return new Promise((resolve) => {
      const begin = () => {
        signal.removeEventListener("abort", left);
        resolve(this.#turn(text, queue));
      };
      const left: AbortListener = {
        handleEvent: () => {
          if (queue.waiting.delete(begin)) resolve(() => {});
          this.#forget(text, queue);
        },
      };
      queue.waiting.add(begin);
      signal.addEventListener("abort", left);
    });
  }

  #mustWait(queue: Queue): boolean {
    return this.#running >= IN_TOTAL || queue.running >= PER_PRINCIPAL;
  }

  #forget(text: string, queue: Queue): void {
    if (queue.running === 0 && queue.waiting.size === 0) this.#queues.delete(text);
  }

  #turn(text: string, queue: Queue): () => void {
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
    this.#forget(text, queue);
    for (const [name, next] of this.#queues) {
      if (next.running >= PER_PRINCIPAL) continue;
      const [begin] = next.waiting;
      if (!begin) continue;
      next.waiting.delete(begin);
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
