/**
 * Keeps one lease alive: confirms it, beats at a third of it, sends progress, hands on follow-ups, and says when it is
 * gone. Limit: it never asks, replies or releases; that is the agent's decision.
 */

import type { Progress } from "../schema/delegation.ts";
import { heartbeatSchema, LEASE_LOST_REASONS, type Lease, type LeaseLostReason } from "../schema/lease.ts";
import type { Checkpoint } from "../schema/values.ts";
import { backoffMs, onAbort, sleep } from "../util/timing.ts";
import { ErrandApiError } from "./errors.ts";
import { FollowUps } from "./follow-ups.ts";
import { type Http, route } from "./http.ts";

/** Why work must stop: what the broker said, or `unknown` (no such lease), or `refused` (the token). */
export type LostReason = LeaseLostReason | "unknown" | "refused";

/** The reason of a handler's signal when its lease is gone: whatever it does now belongs to nobody. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
  readonly reason: LostReason;

  constructor(reason: LostReason) {
    super(`the lease is gone: ${reason}`);
    this.reason = reason;
  }
}

/**
 * What ends a handler's run when the delegation asks something, by `ask` and as its signal's reason: the lease is over,
 * and the answer starts the handler again. Let it pass; what the handler does after it goes nowhere.
 */
export class ParkedError extends Error {
  override readonly name = "ParkedError";

  constructor() {
    super("the delegation asks something: this run is over, the answer starts the next");
  }
}

/** Quick work needs no held heartbeat: it is done before one would have said anything. */
const FIRST_HOLD_AFTER_MS = 50;
/** A held heartbeat that comes back at once (a gateway on its way out) is not repeated at once. */
const BREATH_MS = 1000;
const LONGEST_HOLD_SECONDS = 25;
/** How late an answer may be before the connection counts as dead. */
const ANSWER_MS = 5000;
/** At most this many progress events; the latest of what was said between wins. */
const PROGRESS_EVERY_MS = 500;

/** Made once: an abort without a reason makes a DOMException each time. */
const CLOSED = new Error("the lease is closed");

export class LeaseKeeper {
  readonly lease: Lease;
  readonly followUps: FollowUps;
  readonly #http: Http;
  readonly #path: string;
  readonly #leaseMs: number;
  readonly #handler = new AbortController();
  readonly #beating = new AbortController();
  /** Until then no other worker can have it, by the local clock and the time of asking. */
  #trustedUntil: number;
  #lost: LostReason | null = null;
  /** The handler is done: its signal no longer matters. */
  #settled = false;
  /** The lease is done: no heartbeat matters any more. */
  #closed = false;
  #pending: Progress | undefined;
  #inFlight = 0;
  #sending: Promise<void> | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #interruptId: string | undefined;
  /** What went wrong where the handler does not hear of it. */
  #broken: { readonly error: unknown } | undefined;
  /** The newest follow-up that the broker knows to be seen. */
  #acknowledged: string | undefined;
  #wake: (() => void) | undefined;

  constructor(http: Http, lease: Lease, receivedAt: number) {
    this.#http = http;
    this.lease = lease;
    this.followUps = new FollowUps(
      lease.delegation.history,
      () => this.#wake?.(),
      (error) => this.#break(error),
    );
    this.#path = route`/v1/leases/${lease.lease_id}/heartbeat`;
    const { lease: granted } = lease.delegation;
    // The broker's two instants, not its clock against ours.
    this.#leaseMs = granted ? Date.parse(granted.expires_at) - Date.parse(granted.granted_at) : 60_000;
    this.#trustedUntil = receivedAt + this.#leaseMs;
  }

  /** Aborts when the lease is lost, or by {@link interrupt}. For the handler. */
  get signal(): AbortSignal {
    return this.#handler.signal;
  }

  get lost(): LostReason | null {
    return this.#lost;
  }

  /** The question that ended the lease, if one did and its id is known. */
  get interruptId(): string | undefined {
    return this.#interruptId;
  }

  /** What a listener threw. */
  get broken(): { readonly error: unknown } | undefined {
    return this.#broken;
  }

  /** The first heartbeat: true when the lease is ours. Work starts after it, so that it never runs twice. */
  async confirm(withinMs: number): Promise<boolean> {
    const endsAt = Math.min(this.#trustedUntil, performance.now() + withinMs);
    await this.#persist(endsAt, 0, "released");
    return this.#lost === null;
  }

  /** Beats until {@link close} or the loss. A held heartbeat learns of a cancel within milliseconds. */
  async keep(): Promise<void> {
    const holdSeconds = Math.min(LONGEST_HOLD_SECONDS, this.#leaseMs / 3000);
    await this.#pause(FIRST_HOLD_AFTER_MS);
    while (this.#lost === null && !this.#closed) {
      const askedAt = performance.now();
      await this.#persist(this.#trustedUntil, holdSeconds, "expired");
      const early = performance.now() - askedAt < Math.min(BREATH_MS, holdSeconds * 500);
      if (early && !this.#hasSeenMore()) await this.#rest(Math.min(BREATH_MS, holdSeconds * 1000));
    }
  }

  /** A follow-up was delivered: said at once, or the broker would repeat it and hold no heartbeat. */
  #hasSeenMore(): boolean {
    return this.followUps.seen !== this.#acknowledged;
  }

  /** Never waits and never fails: at most two a second are sent, and the latest of those between wins. */
  progress(progress: Progress): void {
    if (this.#settled || this.#lost !== null) return;
    this.#pending = progress;
    if (this.#sending || this.#timer !== undefined) return;
    const dueMs = this.#sentAt + PROGRESS_EVERY_MS - performance.now();
    if (dueMs <= 0) this.#sendProgress();
    else this.#timer = setTimeout(() => this.#sendProgress(), dueMs);
  }

  /** Resolves once the broker has it. Throws {@link LeaseLostError}, or what no repeat mends. */
  async checkpoint(checkpoint: Checkpoint | null): Promise<void> {
    for (let failures = 0; !this.#closed; failures += 1) {
      if (this.#lost !== null) throw new LeaseLostError(this.#lost);
      try {
        return await this.#beat({ checkpoint }, ANSWER_MS);
      } catch (error) {
        const retryAfterMs = this.judge(error);
        if (error instanceof ErrandApiError && [400, 413, 422].includes(error.status)) throw error;
        if (this.#lost === null)
          await this.#pause(Math.min(backoffMs(failures, retryAfterMs), this.#leaseMs / 6));
      }
    }
    throw CLOSED;
  }

  /** The question is raised: the lease is over. */
  park(interruptId: string): void {
    this.#interruptId = interruptId;
    this.#lose("interrupted");
  }

  /** Stops the handler without a loss: the worker is stopping. */
  interrupt(reason: Error): void {
    if (!this.#settled) this.#abort(reason);
  }

  /** The handler is done. What is on its way arrives before the reply; what waits its turn is dropped. */
  async settle(): Promise<void> {
    this.#settled = true;
    this.followUps.end();
    this.#pending = undefined;
    clearTimeout(this.#timer);
    await this.#sending;
  }

  /**
   * No further heartbeat. One that is held is answered by the reply or release that ended the lease, which
   * keeps its connection usable; `now` cuts it.
   */
  close(now = false): void {
    this.#closed = true;
    this.followUps.end();
    if (now || this.#inFlight === 0) {
      this.#beating.abort(CLOSED);
    } else {
      const timer = setTimeout(() => this.#beating.abort(CLOSED), BREATH_MS);
      this.#beating.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    }
  }

  #sendProgress(): void {
    const progress = this.#pending;
    this.#timer = undefined;
    this.#pending = undefined;
    if (!progress) return;
    this.#sentAt = performance.now();
    this.#sending = this.#beat({ progress }, ANSWER_MS)
      .catch((error: unknown) => void this.judge(error))
      .finally(() => {
        this.#sending = undefined;
        if (this.#pending) this.progress(this.#pending);
      });
  }

  /** One heartbeat that gets through, or the lease is lost. */
  async #persist(endsAt: number, holdSeconds: number, tooLate: LostReason): Promise<void> {
    const body = holdSeconds > 0 ? { wait_seconds: Math.round(holdSeconds * 1000) / 1000 } : {};
    for (let failures = 0; this.#lost === null && !this.#closed; failures += 1) {
      const leftMs = endsAt - performance.now();
      if (leftMs <= 0) return this.#lose(tooLate);
      try {
        return await this.#beat(body, Math.min(leftMs, holdSeconds * 1000 + ANSWER_MS));
      } catch (error) {
        const retryAfterMs = this.judge(error);
        // Tries again soon enough for the lease, however long the outage.
        const delayMs = Math.min(backoffMs(failures, retryAfterMs), this.#leaseMs / 6);
        if (this.#lost === null) await this.#pause(Math.min(delayMs, endsAt - performance.now()));
      }
    }
  }

  async #beat(said: object, timeoutMs: number): Promise<void> {
    const askedAt = performance.now();
    const signal = this.#beating.signal;
    const { seen } = this.followUps;
    const body = { ...said, ...(this.#hasSeenMore() && { seen }) };
    const call = { method: "POST", path: this.#path, body, signal, timeoutMs } as const;
    this.#inFlight += 1;
    try {
      const { messages } = await this.#http.request(heartbeatSchema, call);
      this.#acknowledged = seen;
      this.followUps.arrived(messages);
      this.#trustedUntil = Math.max(this.#trustedUntil, askedAt + this.#leaseMs);
    } finally {
      this.#inFlight -= 1;
      if (this.#closed && this.#inFlight === 0) this.#beating.abort(CLOSED);
    }
  }

  /** Takes the lease for lost if the failure says so; else says how long to wait at least. */
  judge(error: unknown): number | undefined {
    if (!(error instanceof ErrandApiError)) return undefined;
    if (error.code === "lease_lost") this.#lose(lostReason(error.details?.reason));
    else if (error.code === "lease_unknown") this.#lose("unknown");
    else if (error.status === 401 || error.status === 403) this.#lose("refused");
    return error.retryAfterMs;
  }

  #lose(reason: LostReason): void {
    if (this.#lost !== null || this.#closed) return;
    this.#lost = reason;
    if (this.#settled) return;
    const isParked = reason === "interrupted";
    this.#abort(isParked ? new ParkedError() : new LeaseLostError(reason));
  }

  #abort(reason: unknown): void {
    this.followUps.end();
    this.#handler.abort(reason);
  }

  #break(error: unknown): void {
    if (this.#settled || this.#broken) return;
    this.#broken = { error };
    this.#abort(error);
  }

  /** A pause that ends when a follow-up is delivered. */
  async #rest(ms: number): Promise<void> {
    const rest = new AbortController();
    const end = () => rest.abort(CLOSED);
    const off = onAbort(this.#beating.signal, end);
    this.#wake = end;
    await sleep(this.#beating.signal.aborted ? 0 : ms, rest.signal).catch(() => undefined);
    this.#wake = undefined;
    off();
  }

  async #pause(ms: number): Promise<void> {
    await sleep(Math.max(0, ms), this.#beating.signal).catch(() => undefined);
  }
}

function lostReason(value: unknown): LostReason {
  return LEASE_LOST_REASONS.find((reason) => reason === value) ?? "unknown";
}
