/**
 * Waits until replicas have what was written, with Redis' WAIT, so that a fail-over to one of them does not lose it.
 * Limit: WAIT confirms memory, not disk; and a replica that did not confirm may still be chosen as the new master.
 */
import { masterOf, slotOf } from "./cluster.ts";
import type { Redis } from "./connect.ts";
import { isOneServer } from "./servers.ts";

/** How long replicas may take. Less than the silence after which the connection is given up. */
const CONFIRM_MS = 1_000;
const MARK_MS = 10_000;

/** A small write to wait for, allowed at full memory. A replica that has it has every earlier write, too. */
const MARK = `#!lua flags=allow-oom
redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])
return 1`;

/** The master has the write, but too few replicas have confirmed it. */
class NotReplicated extends Error {
  override readonly name = "NotReplicated";
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Replicas {
  readonly #redis: Redis | null;
  readonly #count: number;
  /** The writes that wait for confirmation, by master. One WAIT confirms all of them. */
  readonly #waiting = new Map<string, Waiting[]>();

  /** `redis` is a separate connection, because WAIT blocks it; null: no write waits. */
  constructor(redis: Redis | null, count: number) {
    this.#redis = redis;
    this.#count = count;
  }

  get isRequired(): boolean {
    return this.#redis !== null;
  }

  /**
   * Resolves when the replicas have confirmed everything that was written so far at the master of `mark`, a key
   * reserved for this. Throws {@link NotReplicated} if too few confirm in time.
   */
  confirm(mark: string): Promise<void> {
    const redis = this.#redis;
    if (redis === null) return Promise.resolve();
    const master = isOneServer(redis) ? "" : JSON.stringify(masterOf(redis, slotOf(mark)) ?? mark);
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(master);
      if (waiting) {
        waiting.push({ resolve, reject });
        return;
      }
      this.#waiting.set(master, [{ resolve, reject }]);
      void this.#run(redis, master, mark);
    });
  }

  async #run(redis: Redis, master: string, mark: string): Promise<void> {
    for (;;) {
      const some = this.#waiting.get(master)?.splice(0) ?? [];
      if (some.length === 0) break;
      try {
        await this.#wait(redis, mark);
        for (const { resolve } of some) resolve();
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
    }
    this.#waiting.delete(master);
  }

  async #wait(redis: Redis, mark: string): Promise<void> {
    // WAIT follows the mark to its node.
    const answers = await redis.pipeline().eval(MARK, 1, mark, MARK_MS).wait(this.#count, CONFIRM_MS).exec();
    for (const [error] of answers ?? []) if (error) throw error;
    const confirmed = Number(answers?.[1]?.[1] ?? 0);
    if (confirmed >= this.#count) return;
    throw new NotReplicated(
      `${confirmed} of ${this.#count} replicas confirmed a write within ${CONFIRM_MS} ms`,
    );
  }
}

/** For a writer that does not wait. */
export const NO_REPLICAS = new Replicas(null, 0);
