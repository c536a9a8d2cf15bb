/**
 * Bounds how many outgoing calls run at once to one host, and for one delegator. Limit: places are this gateway's own;
 * several gateways call a host side by side.
 */

/** Of the calls under way at one time; the rest is left for others. */
const PER_HOST = 5;
/** However many hosts they name. */
const PER_DELEGATOR = 10;
const SOONEST_MS = 10;
const LATEST_MS = 60_000;

interface Calls {
  /** When the calls under way began, ms. */
  readonly began: Set<{ readonly at: number }>;
  /** How long its calls take, ms, the newer ones counting more. */
  takes: number;
  /** When what was put back last will find a place, by that, ms. */
  freeAt: number;
}

/** So that one slow host, or one delegator with several of them, does not keep the calls of all others waiting. */
export class HostPlaces {
  readonly #calls = new Map<string, Calls>();

  /** Takes a place: call what comes back when done. When none is free, after how long to come again, ms. */
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

  /** Null: there is a place. */
  #waitFor(name: string, most: number, now: number): number | null {
    const calls = this.#calls.get(name);
    const [oldest] = calls?.began ?? [];
    if (!calls || !oldest || calls.began.size < most) return null;
    // What hangs may do so for as long again: what comes back while it does, comes ever more rarely.
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
