/**
 * Turns for large reads: lists, and pages of events and results. Each principal runs a few at once, and all together
 * a few more, so that no principal's reads delay the others'. Limit: per process; a single read is bounded by its bytes.
 */
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { Principal } from "./access.ts";

const OF_ONE = LIMITS.reads.value;
const OF_ALL = 3 * OF_ONE;

interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

export class ReadLimiter {
  /** The principal that has waited longest for a turn is first. */
  readonly #lines = new Map<string, Line>();
  #running = 0;

  /** Resolves when it is this principal's turn, to a function that ends the turn and may be called twice. */
  async acquire({ text }: Pick<Principal, "text">): Promise<() => void> {
    const line = this.#lines.get(text) ?? { running: 0, waiting: [] };
    this.#lines.set(text, line);
    if (this.#running >= OF_ALL || line.running >= OF_ONE) {
      const limit = LIMITS.reads_waiting.value;
      if (line.waiting.length >= limit) {
        throw new ErrandError("quota_exceeded", `${text} has ${limit} lists and pages waiting to be read.`, {
          retry_after_seconds: 5,
          details: { quota: "reads_waiting", limit },
        });
      }
      await new Promise<void>((resolve) => line.waiting.push(resolve));
    } else {
      this.#running += 1;
      line.running += 1;
    }
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#end(text, line);
    };
  }

  /** Runs it in a turn of the principal. */
  async run<T>(principal: Pick<Principal, "text">, work: () => Promise<T>): Promise<T> {
    const end = await this.acquire(principal);
    try {
      return await work();
    } finally {
      end();
    }
  }

  #end(text: string, line: Line): void {
    this.#running -= 1;
    line.running -= 1;
    if (line.running === 0 && line.waiting.length === 0) this.#lines.delete(text);
    for (const [name, next] of this.#lines) {
      if (next.running >= OF_ONE) continue;
      const begin = next.waiting.shift();
      if (!begin) continue;
      this.#running += 1;
      next.running += 1;
      // Move the principal to the end of the order.
      this.#lines.delete(name);
      this.#lines.set(name, next);
      begin();
      return;
    }
  }
}
