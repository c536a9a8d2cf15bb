/** Backs off during an outage of the broker, and reports the start and the end of the outage once each. */

import { backoffMs, LONGEST_MS, sleep } from "../util/timing.ts";
import { ErrandApiError } from "./errors.ts";
import type { Http } from "./http.ts";

export type OutageEvent =
  /** The broker is unavailable or overloaded. Work in progress continues; the next retry is after `delayMs`, and later ones
   * are at most `longestDelayMs` apart, unless the broker asks for more by Retry-After. */
  | {
      readonly type: "retrying";
      readonly error: ErrandApiError;
      readonly delayMs: number;
      readonly longestDelayMs: number;
    }
  | { readonly type: "recovered" };

const LOOPBACK_LONGEST_MS = 5_000;

export class Outage {
  readonly #report: (event: OutageEvent) => void;
  readonly #http: Http;
  #isOut = false;

  constructor(http: Http, report: (event: OutageEvent) => void) {
    this.#http = http;
    this.#report = report;
  }

  /** Waits before the next retry. Throws `error` if a retry would be refused again. */
  async backOff(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
    if (!(error instanceof ErrandApiError) || isFinal(error) || this.#http.failsFast(error)) throw error;
    const longestDelayMs = longestRetryMs(this.#http.url);
    const delayMs = backoffMs(failures, error.retryAfterMs, longestDelayMs);
    if (!this.#isOut) this.#report({ type: "retrying", error, delayMs, longestDelayMs });
    this.#isOut = true;
    await sleep(delayMs, signal).catch(() => undefined);
  }

  over(): void {
    if (this.#isOut) this.#report({ type: "recovered" });
    this.#isOut = false;
  }
}

/** Only the clients of one machine can crowd a broker at a loopback address, so they return to it sooner. */
export const isLoopback = (url: string): boolean =>
  /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname);

export const longestRetryMs = (url: string): number => (isLoopback(url) ? LOOPBACK_LONGEST_MS : LONGEST_MS);

/** 408, 429 and 5xx are temporary, unless the URL is not a broker's; other refusals are final. */
function isFinal({ status, category }: ErrandApiError): boolean {
  if (status === 408 || status === 429) return false;
  return status >= 500 || status === 0 ? category === "CONFIG" : true;
}
