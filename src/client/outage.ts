/** How an agent rides out an outage of the broker: it backs off, and reports the start and the end of the outage once. */

import { backoffMs, sleep } from "../util/timing.ts";
import { ErrandApiError } from "./errors.ts";
import type { Http } from "./http.ts";

export type OutageEvent =
  /** The broker cannot be reached, or refuses for now. Work in hand continues; the next try is after `delayMs`. */
  | { readonly type: "retrying"; readonly error: ErrandApiError; readonly delayMs: number }
  | { readonly type: "recovered" };

export class Outage {
  readonly #report: (event: OutageEvent) => void;
  readonly #http: Http;
  #away = false;

  constructor(http: Http, report: (event: OutageEvent) => void) {
    this.#http = http;
    this.#report = report;
  }

  /** Waits before the next try. Throws `error` when a retry would be refused again. */
  async backOff(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
    if (!(error instanceof ErrandApiError) || isFinal(error) || this.#http.isHopeless(error)) throw error;
    const delayMs = backoffMs(failures, error.retryAfterMs);
    if (!this.#away) this.#report({ type: "retrying", error, delayMs });
    this.#away = true;
    await sleep(delayMs, signal).catch(() => undefined);
  }

  over(): void {
    if (this.#away) this.#report({ type: "recovered" });
    this.#away = false;
  }
}

/** 408, 429 and 5xx pass with time; other refusals do not. */
function isFinal({ status, category }: ErrandApiError): boolean {
  if (status === 408 || status === 429) return false;
  return status >= 500 || status === 0 ? category === "CONFIG" : true;
}
