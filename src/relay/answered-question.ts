/**
 * Recognizes the question that was just answered: a server may still show it until it has read the answer, and it must
 * not be asked twice. After a while it counts as a new question, so that the delegation does not wait forever if the
 * server lost the answer.
 */
import { createHash } from "node:crypto";
import type { RemoteStatus } from "./updates.ts";

/** How long the answered question is ignored. */
const IGNORE_MS = 60_000;
/** The same, if the task's history shows that the server has the answer. */
const IGNORE_RECEIVED_MS = 600_000;

export class AnsweredQuestion {
  #key: string | undefined;
  readonly #now: () => number;
  #since: number;

  /** `key`: the key of the question that an earlier run answered. */
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

  /** Whether a status still shows the answered question. `hasAnswer`: the server is known to have the answer. */
  isStale(status: RemoteStatus, hasAnswer: boolean): boolean {
    const ignoreMs = hasAnswer ? IGNORE_RECEIVED_MS : IGNORE_MS;
    return this.#key === questionKey(status) && this.#now() - this.#since < ignoreMs;
  }
}

/** A short key of a question: equal while the server shows the same one. */
export function questionKey({ state, message, timestamp }: RemoteStatus): string {
  const shown = JSON.stringify([state?.state, message?.messageId, timestamp]);
  return createHash("sha256").update(shown).digest("base64url").slice(0, 22);
}
