/**
 * Recognizes the question that was just answered: a server may still show it until it has read the answer, and it must not
 * be asked twice. After a while it counts as asked again, so that an answer that the server lost does not leave the
 * delegation waiting.
 */
import { createHash } from "node:crypto";
import type { RemoteStatus } from "./updates.ts";

const STALE_MS = 60_000;
/** When the task's history shows that the server has the answer. */
const RECEIVED_MS = 600_000;

export class AnsweredQuestion {
  #key: string | undefined;
  readonly #now: () => number;
  #since: number;

  /** `key`: the question that an earlier run answered. */
  constructor(key: string | undefined, now: () => number = () => performance.now()) {
    this.#key = key;
    this.#now = now;
    this.#since = now();
  }

  /** Remembers the question that is being answered now. */
  answered(key: string): void {
    this.#key = key;
    this.#since = this.#now();
  }

  isStale(status: RemoteStatus, hasAnswer: boolean): boolean {
    return (
      this.#key === questionKey(status) && this.#now() - this.#since < (hasAnswer ? RECEIVED_MS : STALE_MS)
    );
  }
}

/** A short key of a question: equal while the server shows the same one. */
export function questionKey({ state, message, timestamp }: RemoteStatus): string {
  const shown = JSON.stringify([state?.state, message?.messageId, timestamp]);
  return createHash("sha256").update(shown).digest("base64url").slice(0, 22);
}
