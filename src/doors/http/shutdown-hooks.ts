/**
 * The reason of a stop after which other gateways on this port go on: waiting requests end and connections close, but no
 * request is refused.
 */
export const HANDOVER = "handover";

/**
 * Functions to call when the gateway stops. (Not listeners of an AbortSignal: to remove one of thousands, Node searches
 * them all.)
 */
export class ShutdownHooks {
  readonly #hooks = new Set<() => void>();
  #hasRun = false;

  get size(): number {
    return this.#hooks.size;
  }

  /** Calls the hook at once when the gateway is already stopping. */
  add(hook: () => void): void {
    this.#hooks.add(hook);
    if (this.#hasRun) hook();
  }

  delete(hook: () => void): void {
    this.#hooks.delete(hook);
  }

  run(): void {
    this.#hasRun = true;
    for (const hook of this.#hooks) hook();
  }
}
