/**
 * Limits the requests in progress of each principal; further ones queue. The event loop and the connection to Redis serve
 * in order, so a flood of one principal's requests would delay all others. Limit: requests that wait or stream are not
 * counted; they have their own quotas.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { NOT_EXECUTED } from "./problem.ts";

/** A request that queued for longer is refused: Redis is unavailable, or the principal sends too much. */
const MAX_WAIT_MS = 5_000;

interface Waiter {
  readonly since: number;
  readonly begin: () => void;
  readonly refuse: (error: ErrandError) => void;
}

interface Queue {
  running: number;
  waiting: Set<Waiter> | null;
}

export class ConcurrencyLimiter {
  readonly #queues = new Map<string, Queue>();
  readonly #now: () => number;
  readonly #most: number;

  constructor(now: () => number, most: number = LIMITS.requests.value) {
    this.#now = now;
    this.#most = most;
  }

  /** The number of this principal's requests that run, and of those that wait for their turn. */
  of(principal: string): { readonly running: number; readonly waiting: number } {
    const queue = this.#queues.get(principal);
    return { running: queue?.running ?? 0, waiting: queue?.waiting?.size ?? 0 };
  }

  /**
   * Returns null if the request may run now; otherwise a promise that resolves when its turn comes, and rejects if it is
   * refused. Call {@link end} after a request that ran.
   */
  begin(principal: string): Promise<void> | null {
    let queue = this.#queues.get(principal);
    if (!queue) {
      queue = { running: 0, waiting: null };
      this.#queues.set(principal, queue);
    }
    if (queue.running < this.#most) {
      queue.running += 1;
      return null;
    }
    queue.waiting ??= new Set();
    const { waiting } = queue;
    return new Promise((begin, refuse) => waiting.add({ since: this.#now(), begin, refuse }));
  }

  end(principal: string): void {
    const queue = this.#queues.get(principal);
    if (!queue) return;
    for (const waiter of queue.waiting ?? []) {
      queue.waiting?.delete(waiter);
      if (this.#now() - waiter.since <= MAX_WAIT_MS) {
        // `running` stays the same: the waiter takes the place of the request that ended.
        waiter.begin();
        return;
      }
      waiter.refuse(
        new ErrandError(
          "overloaded",
          `${principal} has too many requests in progress at this gateway; the limit is ${this.#most}.`,
          {
            retry_after_seconds: 1,
            details: { limit: "requests", outcome: NOT_EXECUTED },
          },
        ),
      );
    }
    queue.running -= 1;
    if (queue.running === 0) this.#queues.delete(principal);
  }
}
