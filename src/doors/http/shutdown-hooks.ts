/**
 * The reason of a stop after which other gateways on this port go on: waiting requests end and connections close, but no
 * request is refused.
 */
export const HANDOVER = "handover";

/** How long a request that arrives after the start of a hand-over may wait, ms: enough for its first fetch or read. */
const LATE_MS = 250;

/**
 * Functions to call when the gateway stops. (Not listeners of an AbortSignal: to remove one of thousands, Node searches
 * them all.) A hand-over ends what waits; what does not wait is finished.
 */
export class ShutdownHooks {
  readonly #waiting = new Set<() => void>();
  readonly #brief = new Set<() => void>();
  #ran: "stop" | "handover" | null = null;

  get size(): number {
    return this.#waiting.size + this.#brief.size;
  }

  /** Calls the hook at once when the gateway is already stopping, and soon after a hand-over began. */
  add(hook: () => void, waits: boolean): void {
    (waits ? this.#waiting : this.#brief).add(hook);
    if (this.#ran === "stop") hook();
    else if (this.#ran === "handover" && waits) {
      setTimeout(() => this.#waiting.has(hook) && hook(), LATE_MS).unref();
    }
  }

  delete(hook: () => void): void {
    if (!this.#waiting.delete(hook)) this.#brief.delete(hook);
  }

  run({ handover }: { readonly handover: boolean }): void {
    this.#ran = handover ? "handover" : "stop";
    for (const hook of this.#waiting) hook();
    if (!handover) for (const hook of this.#brief) hook();
  }
}
