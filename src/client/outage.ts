/**
 * Backs off during an outage of the broker, and reports the start and the end of the outage once each. Heartbeats have a
 * back-off of their own, and report what they see here.
 */

import { backoffMs, LONGEST_MS, sleep } from "../util/timing.ts";
import { ErrandApiError } from "./errors.ts";
import type { Http } from "./http.ts";

export type OutageEvent =
  /**
   * The broker is unavailable or overloaded. Work in progress continues; the next retry is after `delayMs`, and later ones
   * are at most `longestDelayMs` apart, unless the broker asks for more by Retry-After. If the broker does not answer, the
   * first running handler is stopped in `stopsInMs`; without one, or with `keepRunning`, it is undefined.
   */
  | {
      readonly type: "retrying";
      readonly error: ErrandApiError;
      readonly delayMs: number;
      readonly longestDelayMs: number;
      readonly stopsInMs?: number | undefined;
    }
  | { readonly type: "recovered" };

const LOOPBACK_LONGEST_MS = 5_000;

export class Outage {
  readonly #report: (event: OutageEvent) => void;
  readonly #http: Http;
  readonly #stopsInMs: () => number | undefined;
  #isOut = false;
  /** Heartbeats fail in this outage, too. */
  #heartbeatsFail = false;

  /** `stopsInMs`: when the first running handler is stopped without an answer. */
  constructor(
    http: Http,
    report: (event: OutageEvent) => void,
    stopsInMs: () => number | undefined = () => undefined,
  ) {
    this.#http = http;
    this.#report = report;
    this.#stopsInMs = stopsInMs;
  }

  /** Waits before the next retry. Throws `error` if a retry would be refused again. */
  async backOff(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
    if (!(error instanceof ErrandApiError) || isFinal(error) || this.#http.failsFast(error)) throw error;
    const longestDelayMs = longestRetryMs(this.#http.url);
    const delayMs = backoffMs(failures, error.retryAfterMs, longestDelayMs);
    this.#begin(error, delayMs, longestDelayMs);
    await sleep(delayMs, signal).catch(() => undefined);
  }

  /** A heartbeat failed again, and is repeated after `delayMs`. */
  heartbeatFailed(error: unknown, delayMs: number, longestDelayMs: number): void {
    if (!(error instanceof ErrandApiError)) return;
    this.#heartbeatsFail = true;
    this.#begin(error, delayMs, longestDelayMs);
  }

  /** Without failed heartbeats, an answer to one says nothing: the broker may refuse only polls, or a proxy end them. */
  heartbeatAnswered(): void {
    if (this.#heartbeatsFail) this.over();
  }

  over(): void {
    const wasOut = this.#isOut;
    this.#isOut = false;
    this.#heartbeatsFail = false;
    if (wasOut) this.#report({ type: "recovered" });
  }

  #begin(error: ErrandApiError, delayMs: number, longestDelayMs: number): void {
    if (this.#isOut) return;
    this.#isOut = true;
    const stopsInMs = this.#stopsInMs();
    const stops = stopsInMs === undefined ? {} : { stopsInMs };
    this.#report({ type: "retrying", error, delayMs, longestDelayMs, ...stops });
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
