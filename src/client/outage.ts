/**
 * How an agent bears with a broker that is away: backs off, says so once, says when it is back.
 * Limit: it decides only what is worth another try; what to try is the caller's.
 */
import { ErrandApiError } from "./errors.ts";
import type { Http } from "./http.ts";
import { backoffMs, sleep } from "./timing.ts";
import type { AgentEvent } from "./work.ts";

export class Outage {
  readonly #tell: (event: AgentEvent) => void;
  readonly #http: Http;
  #away = false;

  constructor(http: Http, tell: (event: AgentEvent) => void) {
    this.#http = http;
    this.#tell = tell;
  }

  /** Throws what no retry mends: a refusal that will be the same next time. */
  async backOff(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
    if (!(error instanceof ErrandApiError) || isFinal(error) || this.#http.isHopeless(error)) throw error;
    const delayMs = backoffMs(failures, error.retryAfterMs);
    if (!this.#away) this.#tell({ type: "retrying", error, delayMs });
    this.#away = true;
    await sleep(delayMs, signal).catch(() => undefined);
  }

  over(): void {
    if (this.#away) this.#tell({ type: "recovered" });
    this.#away = false;
  }
}

/** 408 and 429 pass, and a 5xx is the broker's trouble: an agent outlives both. */
function isFinal({ status, category }: ErrandApiError): boolean {
  if (status === 408 || status === 429) return false;
  return status >= 500 || status === 0 ? category === "CONFIG" : true;
}
