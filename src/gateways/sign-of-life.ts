/**
 * Whether a gateway responds. The supervisor counts regular checks without a report of the gateway, so that it does not
 * take a stall of its own process for silence of the gateway.
 */
import type { Report } from "./messages.ts";

/** How often a gateway reports that its event loop runs, and how often the supervisor checks. */
export const BEAT_MS = 5_000;
/** Half a minute: a gateway that only stalls, for example on a machine that swaps, continues by itself before. */
const MOST_MISSED = 6;
/** A process that has not reported anything for this many checks since it was forked hangs, too: one minute. */
const MOST_MISSED_AT_START = 12;

export class SignOfLife {
  #missed = 0;
  #hasReported = false;
  /** A gateway of a version that reports no beats is not watched after its start. */
  #beats = false;

  received({ type }: Report): void {
    this.#missed = 0;
    this.#hasReported = true;
    if (type === "alive") this.#beats = true;
  }

  /** One check. Returns whether the gateway hangs. */
  isMissing(): boolean {
    this.#missed += 1;
    const most = this.#hasReported ? MOST_MISSED : MOST_MISSED_AT_START;
    if (this.#missed <= most || (this.#hasReported && !this.#beats)) return false;
    this.#missed = 0;
    return true;
  }
}
