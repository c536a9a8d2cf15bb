/**
 * Decides when a worker may take work: a circuit breaker. A worker that fails several delegations in a row, fast, or that
 * cannot work at all, would otherwise get most of the queue, because failing is faster than working. It pauses, longer
 * each time, and then tries one delegation. Limit: it knows one worker only, and stores nothing.
 */
import { doublingMs, onAbort, sleep } from "./timing.ts";

/** A run that fails later than this is slow: it takes little of the queue, and shows that the worker can begin to work. */
export const FAST_MS = 10_000;
/** How many different delegations must fail fast in a row. */
export const FAILURES_IN_A_ROW = 3;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;
/** The rounds by which one delegation alone may make the pause longer: 5 s doubles to 40 s. */
const ROUNDS_FOR_ONE = 4;
/** The longest pause that a provider can ask for. */
const LONGEST_NAMED_MS = 86_400_000;
/** The longest row that is remembered. */
const ROW_MAX = 1_000;

export type Ended =
  /** It did the work, asked, or rejected it. */
  | { readonly kind: "worked" }
  | { readonly kind: "failed"; readonly id: string; readonly code: string }
  /** No delegation would succeed now. `retryAfterMs`: how long, as the service that refused says. */
  | {
      readonly kind: "unable";
      readonly id: string;
      readonly reason: string;
      readonly retryAfterMs?: number | undefined;
    };

export interface Pause {
  readonly ms: number;
  /** Without anything that a task printed. */
  readonly reason: string;
}

export interface BreakerOptions {
  /** Milliseconds of a clock that never jumps. */
  readonly now?: (() => number) | undefined;
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
  readonly random?: (() => number) | undefined;
  /** The longest pause, unless a provider names a longer one. Default: 5 minutes. */
  readonly longestPauseMs?: number | undefined;
  /** Called when a pause begins. */
  readonly onPause?: ((pause: Pause) => void) | undefined;
  /** Called when a try succeeds after a pause. */
  readonly onResume?: (() => void) | undefined;
}

/** The right to take one delegation. End it by {@link Breaker.end} or {@link Breaker.leave}. */
export interface Permit {
  /** Aborts when a pause begins before the work, and with the signal of {@link Breaker.enter}: a poll must then end. */
  readonly signal: AbortSignal;
}

/** Shared, because an abort without a reason creates a DOMException each time. */
const LEFT = new Error("the permit has ended");
const PAUSED = new Error("the worker is paused");

interface Given {
  readonly controller: AbortController;
  readonly unsubscribe: () => void;
  /** The number of pauses when it was given. What began before a pause says nothing about the time after it. */
  readonly pauses: number;
  startedAt: number | undefined;
}

export class Breaker {
  readonly #now: () => number;
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly #random: () => number;
  readonly #longestPauseMs: number;
  readonly #onPause: ((pause: Pause) => void) | undefined;
  readonly #onResume: (() => void) | undefined;
  readonly #given = new Map<Permit, Given>();
  /** The delegations since the last success that failed fast, or for which the worker was unable. Each counts once. */
  readonly #row = new Set<string>();
  readonly #waiting = new Set<() => void>();
  #pauses = 0;
  /** How many pauses without a success between them; decides the length of the next one. */
  #rounds = 0;
  #until: number | undefined;
  #probe: Permit | undefined;
  #isProven = false;

  constructor({
    now,
    sleep: sleeps,
    random,
    longestPauseMs = LONGEST_PAUSE_MS,
    onPause,
    onResume,
  }: BreakerOptions = {}) {
    this.#now = now ?? (() => performance.now());
    this.#sleep = sleeps ?? sleep;
    this.#random = random ?? Math.random;
    this.#longestPauseMs = longestPauseMs;
    this.#onPause = onPause;
    this.#onResume = onResume;
  }

  /** True from the begin of a pause until a try succeeds, or has run too long to fail fast. */
  get isOpen(): boolean {
    return this.#until !== undefined;
  }

  /** True if the newest results were fast failures, or there is a pause: the next result decides what they are worth. */
  get isSuspicious(): boolean {
    return this.#row.size > 0 || this.isOpen;
  }

  /** True after a success, or a run too long to fail fast, since the last pause. Until then, take few at once. */
  get isProven(): boolean {
    return this.#isProven;
  }

  /** Waits until the worker may take work. Rejects with the signal's reason. After a pause, one caller gets a permit. */
  async enter(signal: AbortSignal): Promise<Permit> {
    for (;;) {
      signal.throwIfAborted();
      const until = this.#until;
      if (until === undefined) return this.#permit(signal);
      const left = until - this.#now();
      if (left > 0) await this.#wait(left, signal);
      else if (this.#probe === undefined) {
        this.#probe = this.#permit(signal);
        return this.#probe;
      } else await this.changed(signal);
    }
  }

  /** Ends a pause, because what broke the worker has changed. */
  reset(): void {
    if (!this.isOpen) return;
    this.#pauses += 1;
    this.#probe = undefined;
    this.#worked();
  }

  /** Waits for the time, or the next change. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    const waiting = new AbortController();
    const unsubscribe = onAbort(signal, () => waiting.abort(signal.reason));
    try {
      await Promise.race([this.#sleep(ms, waiting.signal), this.changed(waiting.signal)]);
    } finally {
      unsubscribe();
      waiting.abort(LEFT);
    }
  }

  /** Call it when the work begins. */
  began(permit: Permit): void {
    const given = this.#given.get(permit);
    if (given === undefined) return;
    given.startedAt = this.#now();
    if (permit === this.#probe || !this.#isProven) void this.#trust(permit, given.controller.signal);
  }

  /** Whether a failure at this moment is a fast one. */
  isFast(permit: Permit): boolean {
    const startedAt = this.#given.get(permit)?.startedAt;
    return startedAt !== undefined && this.#now() - startedAt < FAST_MS;
  }

  /**
   * Whether the newest fast failures are the worker's own. Waits for a pause (true), a success, the end of `next`, which
   * is the run of another delegation, or until that takes too long to fail fast (false).
   */
  async isOwnFault(next: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
    const waiting = new AbortController();
    const unsubscribe = onAbort(signal, () => waiting.abort(signal.reason));
    let isOver = signal.aborted;
    const over = () => {
      isOver = true;
    };
    const end = Promise.race([next, this.#sleep(FAST_MS, waiting.signal)]).then(over, over);
    try {
      while (!isOver && !this.isOpen && this.isSuspicious)
        await Promise.race([end, this.changed(waiting.signal)]).catch(over);
      return this.isOpen;
    } finally {
      unsubscribe();
      waiting.abort(LEFT);
    }
  }

  /** Ends a permit without a result: no work came, or it was lost or returned. */
  leave(permit: Permit): void {
    const given = this.#given.get(permit);
    this.#given.delete(permit);
    given?.unsubscribe();
    given?.controller.abort(LEFT);
    if (this.#probe !== permit) return;
    this.#probe = undefined;
    this.#changed();
  }

  /** Ends a permit. Returns the pause that this result begins, or during one what is left of it for an `unable`. */
  end(permit: Permit, ended: Ended): Pause | undefined {
    const given = this.#given.get(permit);
    if (given === undefined) return undefined;
    const isLate = given.pauses !== this.#pauses;
    const isFast = this.isFast(permit);
    const isProbe = this.#probe === permit;
    this.leave(permit);
    if (isLate) return ended.kind === "unable" ? this.#rest(ended.reason) : undefined;
    if (ended.kind === "worked" || (ended.kind === "failed" && !isFast)) {
      this.#worked();
      return undefined;
    }
    const isKnown = this.#row.has(ended.id);
    if (this.#row.size < ROW_MAX) this.#row.add(ended.id);
    if (ended.kind === "unable") {
      // The delegation may itself be the cause.
      const most = isKnown ? ROUNDS_FOR_ONE : Number.POSITIVE_INFINITY;
      return this.#pause(ended.reason, most, ended.retryAfterMs);
    }
    if (!isProbe && this.#row.size < FAILURES_IN_A_ROW) return undefined;
    const seconds = FAST_MS / 1000;
    const reason = `${this.#row.size} delegations in a row failed within ${seconds} s (${ended.code})`;
    // The same delegation again proves nothing new about the worker: it may itself be bad.
    return this.#pause(reason, isKnown ? 1 : Number.POSITIVE_INFINITY);
  }

  /** Resolves with the next change: a success, a pause, or the end of a try. Rejects with the signal's reason. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting.delete(end);
        unsubscribe();
        resolve();
      };
      const unsubscribe = onAbort(signal, () => {
        this.#waiting.delete(end);
        reject(signal.reason);
      });
      this.#waiting.add(end);
      if (signal.aborted) reject(signal.reason);
    });
  }

  #permit(stopping: AbortSignal): Permit {
    const controller = new AbortController();
    const permit = { signal: controller.signal };
    const unsubscribe = onAbort(stopping, () => controller.abort(stopping.reason));
    this.#given.set(permit, { controller, unsubscribe, pauses: this.#pauses, startedAt: undefined });
    return permit;
  }

  /** A try that runs longer does not fail fast, so the other slots need not wait for its end. */
  async #trust(permit: Permit, signal: AbortSignal): Promise<void> {
    try {
      await this.#sleep(FAST_MS, signal);
    } catch {
      return;
    }
    if (this.#given.get(permit)?.pauses !== this.#pauses) return;
    this.#isProven = true;
    if (this.#probe === permit) {
      this.#probe = undefined;
      this.#until = undefined;
    }
    this.#changed();
  }

  #rest(reason: string): Pause | undefined {
    const ms = this.#until === undefined ? 0 : this.#until - this.#now();
    return ms > 0 ? { ms, reason } : undefined;
  }

  #worked(): void {
    const wasPaused = this.#rounds > 0;
    this.#row.clear();
    this.#isProven = true;
    this.#rounds = 0;
    this.#until = undefined;
    if (wasPaused) this.#onResume?.();
    this.#changed();
  }

  /** Twice as long as the last one, up to so many rounds. */
  #pause(reason: string, mostRounds: number, retryAfterMs?: number): Pause {
    this.#rounds = Math.max(this.#rounds, Math.min(this.#rounds + 1, mostRounds));
    const own = doublingMs(this.#rounds - 1, FIRST_PAUSE_MS, this.#longestPauseMs);
    const named = Math.min(LONGEST_NAMED_MS, retryAfterMs ?? 0);
    // Many workers may wait for the same time, so they are spread after it.
    const ms = Math.ceil(
      named > own ? named + this.#random() * FIRST_PAUSE_MS : own * (1 - this.#random() / 4),
    );
    this.#pauses += 1;
    this.#isProven = false;
    this.#until = this.#now() + ms;
    this.#probe = undefined;
    const pause = { ms, reason };
    this.#onPause?.(pause);
    for (const { controller, startedAt } of this.#given.values())
      if (startedAt === undefined) controller.abort(PAUSED);
    this.#changed();
    return pause;
  }

  #changed(): void {
    for (const done of [...this.#waiting]) done();
  }
}
