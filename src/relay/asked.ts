/**
 * Whether a question is the one that was just answered: a server may show it still until it has read the answer, and
 * nobody is to be asked twice. Limit: after a time it counts as asked again, so that an answer that got lost there does
 * not leave the delegation waiting.
 */
import { createHash } from "node:crypto";
import type { RemoteStatus } from "./updates.ts";

const STALE_MS = 60_000;
/** The task's history shows that the server has the answer. */
const HEARD_MS = 600_000;

export class Asked {
  #key: string | undefined;
  readonly #now: () => number;
  #since: number;

  /** `key`: of a run before this one. */
  constructor(key: string | undefined, now: () => number = () => performance.now()) {
    this.#key = key;
    this.#now = now;
    this.#since = now();
  }

  /** This one is being answered now. */
  answered(key: string): void {
    this.#key = key;
    this.#since = this.#now();
  }

  isStale(status: RemoteStatus, isHeard: boolean): boolean {
    return this.#key === keyOf(status) && this.#now() - this.#since < (isHeard ? HEARD_MS : STALE_MS);
  }
}

/** How it looks, in few characters. */
export function keyOf({ state, message, timestamp }: RemoteStatus): string {
  const looks = JSON.stringify([state?.state, message?.messageId, timestamp]);
  return createHash("sha256").update(looks).digest("base64url").slice(0, 22);
}
