/**
 * Bounds how many outgoing calls run at once to one host, and for one delegator. Limit: places are this gateway's own;
 * several gateways call a host side by side.
 */

/** Calls to one host that run at once. */
const PER_HOST = 5;
/** Calls for one delegator that run at once, to whatever hosts. */
const PER_DELEGATOR = 10;
const SOONEST_MS = 10;
const LATEST_MS = 60_000;

interface Calls {
  /** When the running calls began, ms. */
  readonly began: Set<{ readonly at: number }>;
  /** How long its calls take, ms: a moving average. */
  takes: number;
  /** When the call that was put back last should find a place, ms. */
  freeAt: number;
}

/** Keeps one slow host, or one delegator with several of them, from delaying the calls of all others. */
export class HostPlaces {
  readonly #calls = new Map<string, Calls>();

  /** Takes a place; call the returned function to free it. When none is free, returns the delay of the next try, ms. */
  take(host: string, delegator: string): (() => void) | number {
    const now = performance.now();
    const wait =
      this.#waitFor(`to ${host}`, PER_HOST, now) ?? this.#waitFor(`by ${delegator}`, PER_DELEGATOR, now);
    if (wait !== null) return wait;
    const give = [`to ${host}`, `by ${delegator}`].map((name) => this.#count(name, now));
    return () => {
      for (const one of give) one();
    };
  }

  /** The delay until a place should be free, ms; null when one is. */
  #waitFor(name: string, most: number, now: number): number | null {
    const calls = this.#calls.get(name);
    const [oldest] = calls?.began ?? [];
    if (!calls || !oldest || calls.began.size < most) return null;
    // A hanging call may hang for as long again, so the tries become rarer.
    const takes = Math.max(calls.takes, now - oldest.at);
    calls.freeAt = Math.min(now + LATEST_MS, Math.max(now, calls.freeAt) + takes / most);
    return Math.max(SOONEST_MS, calls.freeAt - now);
  }

  #count(name: string, now: number): () => void {
    const calls = this.#calls.get(name) ?? { began: new Set(), takes: SOONEST_MS, freeAt: 0 };
    this.#calls.set(name, calls);
    const call = { at: now };
    calls.began.add(call);
    return () => {
      calls.began.delete(call);
      calls.takes = (calls.takes + performance.now() - now) / 2;
      if (calls.began.size === 0) this.#calls.delete(name);
    };
  }
}
