/**
 * Limits the requests in progress of each principal; further ones queue. The event loop and the connection to Redis serve
 * in order, so a flood of one principal's requests would delay all others. A request with a large body counts as several,
 * because a parsed body may take twenty times the memory. Limit: requests that wait or stream are not counted; they have
 * their own quotas.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { NOT_EXECUTED } from "./problem.ts";

/** A request that queued for longer is refused: Redis is unavailable, or the principal sends too much. */
const MAX_WAIT_MS = 5_000;

/** A request counts as one more for each of these bytes in its body. */
const BYTES_EACH = 16 * 1024;

/** The number of requests that one with a body of this size counts as. */
export const weightOf = (bytes: number): number => 1 + Math.floor(bytes / BYTES_EACH);

interface Waiter {
  readonly weight: number;
  readonly since: number;
  readonly begin: () => void;
  readonly refuse: (error: ErrandError) => void;
}

interface Queue {
  /** The weights of the requests that run. */
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

  /** The weight of this principal's requests that run, and the number of those that wait for their turn. */
  of(principal: string): { readonly running: number; readonly waiting: number } {
    const queue = this.#queues.get(principal);
    return { running: queue?.running ?? 0, waiting: queue?.waiting?.size ?? 0 };
  }

  /**
   * Returns null if the request may run now; otherwise a promise that resolves when its turn comes, and rejects if it is
   * refused. A request that is heavier than the limit runs alone. Call {@link end} after a request that ran.
   */
  begin(principal: string, weight = 1): Promise<void> | null {
    let queue = this.#queues.get(principal);
    if (!queue) {
      queue = { running: 0, waiting: null };
      this.#queues.set(principal, queue);
    }
    if (!queue.waiting?.size && this.#hasRoom(queue, weight)) {
      queue.running += weight;
      return null;
    }
    queue.waiting ??= new Set();
    const { waiting } = queue;
    return new Promise((begin, refuse) => waiting.add({ weight, since: this.#now(), begin, refuse }));
  }

  /** `weight` as it was given to {@link begin}. */
  end(principal: string, weight = 1): void {
    const queue = this.#queues.get(principal);
    if (!queue) return;
    queue.running -= weight;
    for (const waiter of queue.waiting ?? []) {
      const isLate = this.#now() - waiter.since > MAX_WAIT_MS;
      if (!isLate && !this.#hasRoom(queue, waiter.weight)) return;
      queue.waiting?.delete(waiter);
      if (!isLate) {
        queue.running += waiter.weight;
        waiter.begin();
        continue;
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
    if (queue.running === 0) this.#queues.delete(principal);
  }

  #hasRoom({ running }: Queue, weight: number): boolean {
    return running === 0 || running + weight <= this.#most;
  }
}
