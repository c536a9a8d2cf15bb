/**
 * Notices that the event loop was blocked: by a computation, or because the machine slept. No heartbeat is sent
 * meanwhile, so a lease may expire, and without this nobody would know why.
 */

const EVERY_MS = 1_000;
/** Shorter blocks let no lease expire. */
const LONG_MS = 1_000;

export class LoopWatch {
  readonly #now: () => number;
  #timer: ReturnType<typeof setInterval> | undefined;
  #expectedAt = Number.POSITIVE_INFINITY;
  #last: { readonly ms: number; readonly endedAt: number } | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  start(): void {
    this.#expectedAt = this.#now() + EVERY_MS;
    this.#timer = setInterval(() => this.look(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#expectedAt = Number.POSITIVE_INFINITY;
  }

  /** Compares the time with the one at which the timer should have called. */
  look(): void {
    const now = this.#now();
    const late = now - this.#expectedAt;
    if (late < 0) return;
    this.#expectedAt = now + EVERY_MS;
    if (late >= LONG_MS) this.#last = { ms: Math.round(late), endedAt: now };
  }

  /** How long the last block was, in ms, if it ended within the last `ms`. One that the timer has not seen yet counts. */
  blockedWithin(ms: number): number | undefined {
    this.look();
    return this.#last && this.#now() - this.#last.endedAt <= ms ? this.#last.ms : undefined;
  }
}
