/**
 * Limits how many outgoing calls run at once to one host, and for one delegator. Limit: counted per gateway; several
 * gateways call a host side by side.
 */

/** The most calls to one host that run at once. */
const PER_HOST = 5;
/** The most calls for one delegator that run at once, to all hosts together. */
const PER_DELEGATOR = 10;
const SOONEST_MS = 10;
const LATEST_MS = 60_000;

interface Calls {
  /** The running calls and when they began, ms, oldest first. */
  readonly running: Set<{ readonly at: number }>;
  /** The moving average of how long a call takes, ms. */
  averageMs: number;
  /** When a slot should be free for the newest of the delayed calls, ms. */
  freeAt: number;
}

/** Ensures that one slow host, or one delegator with several slow hosts, does not delay the calls of others. */
export class HostLimiter {
  readonly #calls = new Map<string, Calls>();

  /** Takes a slot; call the returned function to free it. When none is free, returns the delay of the next try, ms. */
  acquire(host: string, delegator: string): (() => void) | number {
    const now = performance.now();
    const wait =
      this.#waitFor(`to ${host}`, PER_HOST, now) ?? this.#waitFor(`by ${delegator}`, PER_DELEGATOR, now);
    if (wait !== null) return wait;
    const releases = [`to ${host}`, `by ${delegator}`].map((name) => this.#count(name, now));
    return () => {
      for (const release of releases) release();
    };
  }

  /** The delay until a slot should be free, ms; null when one is. */
  #waitFor(name: string, most: number, now: number): number | null {
    const calls = this.#calls.get(name);
    const [oldest] = calls?.running ?? [];
    if (!calls || !oldest || calls.running.size < most) return null;
    // A call that hangs may hang for as long again, so the tries become rarer.
    const callMs = Math.max(calls.averageMs, now - oldest.at);
    calls.freeAt = Math.min(now + LATEST_MS, Math.max(now, calls.freeAt) + callMs / most);
    return Math.max(SOONEST_MS, calls.freeAt - now);
  }

  #count(name: string, now: number): () => void {
    const calls = this.#calls.get(name) ?? { running: new Set(), averageMs: SOONEST_MS, freeAt: 0 };
    this.#calls.set(name, calls);
    const call = { at: now };
    calls.running.add(call);
    return () => {
      calls.running.delete(call);
      calls.averageMs = (calls.averageMs + performance.now() - now) / 2;
      if (calls.running.size === 0) this.#calls.delete(name);
    };
  }
}
