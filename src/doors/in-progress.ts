/**
 * Bounds the requests that one principal has in progress, so that a flood of them delays others by a bounded time: the
 * event loop and the connection to Redis serve in order. Limit: requests that wait or stream are not counted; they have
 * quotas of their own.
 */
import { ErrandError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import { NOT_EXECUTED } from "./problem.ts";

/** A request that has waited for so long is refused: Redis is away, or the principal asks for too much. */
const PATIENCE_MS = 5_000;

interface Waiter {
  readonly since: number;
  readonly begin: () => void;
  readonly refuse: (error: ErrandError) => void;
}

interface Line {
  running: number;
  waiting: Set<Waiter> | null;
}

export class InProgress {
  readonly #lines = new Map<string, Line>();
  readonly #now: () => number;
  readonly #most: number;

  constructor(now: () => number, most: number = LIMITS.requests.value) {
    this.#now = now;
    this.#most = most;
  }

  /** The requests of this principal that run, and those that wait for them. */
  of(principal: string): { readonly running: number; readonly waiting: number } {
    const line = this.#lines.get(principal);
    return { running: line?.running ?? 0, waiting: line?.waiting?.size ?? 0 };
  }

  /** Begins at once, or returns a promise for the principal's turn. {@link end} follows, unless the promise rejects. */
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
      if (this.#now() - waiter.since <= PATIENCE_MS) {
        // Its place goes to the next in line.
        waiter.begin();
        return;
      }
      waiter.refuse(
        new ErrandError("overloaded", `${principal} has too many requests in progress at this gateway.`, {
          retry_after_seconds: 1,
          details: { limit: "requests", outcome: NOT_EXECUTED },
        }),
      );
    }
    line.running -= 1;
    if (line.running === 0) this.#lines.delete(principal);
  }
}
