/**
 * Bounds the requests that one principal has in progress. The event loop and the connection to Redis serve in order, so
 * a flood of one principal's requests would delay all others. Limit: requests that wait or stream are not counted; they
 * have quotas of their own.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { NOT_EXECUTED } from "./problem.ts";

/** A request that waited longer for its turn is refused: Redis is away, or the principal sends too much. */
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
  readonly #lines = new Map<string, Queue>();
  readonly #now: () => number;
  readonly #most: number;

  constructor(now: () => number, most: number = LIMITS.requests.value) {
    this.#now = now;
    this.#most = most;
  }

  /** How many requests of this principal run, and how many wait for their turn. */
  of(principal: string): { readonly running: number; readonly waiting: number } {
    const line = this.#lines.get(principal);
    return { running: line?.running ?? 0, waiting: line?.waiting?.size ?? 0 };
  }

  /**
   * Null: the request may run now. Else a promise that resolves when its turn comes, and rejects when it is refused. A
   * request that ran is followed by {@link end}.
   */
  begin(principal: string): Promise<void> | null {
    let line = this.#lines.get(principal);
    if (!line) {
      line = { running: 0, waiting: null };
      this.#lines.set(principal, line);
    }
    if (line.running < this.#most) {
      line.running += 1;
      return null;
    }
    line.waiting ??= new Set();
    const { waiting } = line;
    return new Promise((begin, refuse) => waiting.add({ since: this.#now(), begin, refuse }));
  }

  end(principal: string): void {
    const line = this.#lines.get(principal);
    if (!line) return;
    for (const waiter of line.waiting ?? []) {
      line.waiting?.delete(waiter);
      if (this.#now() - waiter.since <= MAX_WAIT_MS) {
        // `running` stays: the next in line takes the place.
        waiter.begin();
        return;
      }
      waiter.refuse(
        new ErrandError(
          "overloaded",
          `${principal} has ${this.#most} requests in progress at this gateway, the limit.`,
          {
            retry_after_seconds: 1,
            details: { limit: "requests", outcome: NOT_EXECUTED },
          },
        ),
      );
    }
    line.running -= 1;
    if (line.running === 0) this.#lines.delete(principal);
  }
}
