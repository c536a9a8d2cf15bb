/**
 * Holds one lease for the library's agents and for push agents: sends heartbeats at a third of the lease, progress and
 * checkpoints, delivers follow-ups, and aborts a signal when the lease is lost or the broker is silent for too long. Only
 * the broker ends the lease. Its owner sends questions and replies.
 */
import type { Message } from "../schema/a2a.ts";
import type { BudgetShown } from "../schema/budget.ts";
import type { Progress } from "../schema/delegation.ts";
import type { HeartbeatInput, HoldingState, Lease } from "../schema/lease.ts";
import type { UsageReport } from "../schema/usage.ts";
import type { Checkpoint } from "../schema/values.ts";
import { backoffMs, LONGEST_MS, onAbort, sleep } from "../util/timing.ts";
import { FollowUps } from "./follow-ups.ts";
import {
  CutOffError,
  isParked,
  LeaseLostError,
  type LostReason,
  OverBudgetError,
  ParkedError,
} from "./lost.ts";
import { type Update, UpdateThrottle } from "./progress.ts";
import { type Moment, now, Silence } from "./silence.ts";

/** How a holder reaches the broker: over HTTP from a worker, by function calls in a gateway. */
export interface LeaseTransport {
  readonly heartbeat: (
    request: HeartbeatInput,
    limits: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ) => Promise<{
    readonly state: string;
    readonly messages: readonly Message[];
    readonly budget?: BudgetShown | undefined;
  }>;
  /** Whether the error of a call says that the lease is lost. */
  readonly judge: (error: unknown) => Verdict;
  /** The longest pause between two tries, ms. Default: that of `backoffMs`. */
  readonly longestRetryMs?: number;
}

export type Verdict =
  | { readonly kind: "lost"; readonly reason: LostReason }
  /** The request is refused and would be refused again, unless only for its usage; the lease may still be live. */
  | { readonly kind: "refused"; readonly isForUsage?: boolean }
  | { readonly kind: "retry"; readonly retryAfterMs?: number | undefined };

export interface RetryOptions {
  readonly signal?: AbortSignal | undefined;
  /** Returns the time, by `performance.now()`, until which the call is repeated. */
  readonly until?: (() => number) | undefined;
}

export interface HolderOptions {
  /** Whether the handler runs on while the broker is silent, however long. Default false. */
  readonly keepRunning?: boolean | undefined;
  /**
   * A heartbeat failed again when it was repeated, so the failure does not pass by itself; the next try is after `delayMs`,
   * and later ones are at most `longestDelayMs` apart.
   */
  readonly onFailing?: ((error: unknown, delayMs: number, longestDelayMs: number) => void) | undefined;
  /** The broker answered a heartbeat. */
  readonly onAnswered?: (() => void) | undefined;
  /** The broker refused the usage; the calls are repeated without it. */
  readonly onUsageRefused?: ((error: unknown) => void) | undefined;
  /** More was used than the budget allows; called once. */
  readonly onOverBudget?: ((budget: BudgetShown) => void) | undefined;
}

/** Work that ends sooner than this needs no held heartbeat. */
const FIRST_HOLD_AFTER_MS = 50;
/** The pause after a held heartbeat that is answered early, as by a gateway that shuts down. */
const EARLY_PAUSE_MS = 1000;
const LONGEST_HOLD_SECONDS = 25;
/** A connection counts as dead when a response is this late. */
const ANSWER_MS = 5000;
const LONGEST_TICK_MS = 1000;
const DEFAULT_LEASE_MS = 60_000;

/** Shared, because an abort without a reason creates a DOMException each time. */
const CLOSED = new Error("the lease is closed");
const PAUSED = new Error("the process was paused, so the connection may be dead");

export class LeaseHolder {
  readonly lease: Lease;
  readonly followUps: FollowUps;
  readonly #transport: LeaseTransport;
  readonly #leaseMs: number;
  readonly #handler = new AbortController();
  readonly #calls = new AbortController();
  readonly #heartbeats = new AbortController();
  readonly #overBudget = new AbortController();
  readonly #updates: UpdateThrottle;
  readonly #silence: Silence;
  readonly #options: HolderOptions;
  readonly #tickMs: number;
  #ticker: ReturnType<typeof setInterval> | undefined;
  /** Aborts the heartbeat that is under way. */
  #underWay: AbortController | undefined;
  #lost: LostReason | null = null;
  /** The handler is done: its signal no longer matters. */
  #settled = false;
  /** The lease is done: no heartbeat matters any more. */
  #closed = false;
  #inFlight = 0;
  #interruptId: string | undefined;
  #budget: BudgetShown | undefined;
  #usage: UsageReport | undefined;
  /** The usage that the broker has. */
  #reportedUsage: UsageReport | undefined;
  #isUsageRefused = false;
  #listenerFailure: { readonly error: unknown } | undefined;
  /** The newest follow-up whose delivery the broker knows. */
  #acknowledged: string | undefined;
  #endRest: (() => void) | undefined;
  /** The open question that the handler waits for. */
  #hold: { readonly state: HoldingState; readonly end: () => void } | undefined;

  /** `receivedAt`: when the lease arrived, by `performance.now()`. */
  constructor(transport: LeaseTransport, lease: Lease, receivedAt: number, options: HolderOptions = {}) {
    this.#transport = transport;
    this.lease = lease;
    this.followUps = new FollowUps(
      lease.delegation.history,
      () => this.#endRest?.(),
      (error) => this.#failListener(error),
    );
    this.#updates = new UpdateThrottle((update) => this.#report(update, ANSWER_MS));
    const { lease: granted } = lease.delegation;
    // The difference of two times of the broker, because its clock and ours may differ.
    this.#leaseMs = granted
      ? Date.parse(granted.expires_at) - Date.parse(granted.granted_at)
      : DEFAULT_LEASE_MS;
    const received = { monotonic: receivedAt, wall: Date.now() - (performance.now() - receivedAt) };
    this.#silence = new Silence(this.#leaseMs, received);
    this.#options = options;
    this.#budget = lease.delegation.budget;
    this.#tickMs = Math.min(LONGEST_TICK_MS, this.#leaseMs / 6);
  }

  /** The handler's signal: aborts when the lease is lost, or by {@link stopHandler}. */
  get signal(): AbortSignal {
    return this.#handler.signal;
  }

  /** Aborts with the handler's signal, but not when the broker is silent: what is finished is sent when it answers. */
  get callSignal(): AbortSignal {
    return this.#calls.signal;
  }

  /** The budget of the delegation, as the broker answered it last. */
  get budget(): BudgetShown | undefined {
    return this.#budget;
  }

  /** Aborts when more is used than the budget allows: the lease is lost soon. */
  get overBudget(): AbortSignal {
    return this.#overBudget.signal;
  }

  get lost(): LostReason | null {
    return this.#lost;
  }

  /** The question that ended the lease, if one did and its id is known. */
  get interruptId(): string | undefined {
    return this.#interruptId;
  }

  /** The error that a listener of follow-ups threw. */
  get listenerFailure(): { readonly error: unknown } | undefined {
    return this.#listenerFailure;
  }

  /** Whether the handler was stopped because the broker was silent for too long. The lease may still be ours. */
  get cutOff(): boolean {
    return this.signal.reason instanceof CutOffError;
  }

  /** How far each call extends the lease. */
  get leaseMs(): number {
    return this.#leaseMs;
  }

  /** In how many milliseconds the handler is stopped, unless the broker answers; undefined if it is not. */
  get stopsInMs(): number | undefined {
    if (this.#ticker === undefined || !this.#mayBeCutOff) return undefined;
    return this.#silence.leftMs(now());
  }

  get #mayBeCutOff(): boolean {
    return !this.#options.keepRunning && !this.#settled && !this.#closed && !this.signal.aborted;
  }

  /**
   * Repeats the first heartbeat until the broker answers or the handler is stopped. False if the lease is lost. While it
   * is not answered, the lease may be ours, and nothing else can be done with it.
   */
  async confirm(): Promise<boolean> {
    await this.#repeatHeartbeat(0, this.signal);
    return this.#lost === null;
  }

  /** Sends heartbeats until {@link close} or the loss. The broker holds them, so a cancel arrives in milliseconds. */
  async keepAlive(): Promise<void> {
    const holdSeconds = Math.min(LONGEST_HOLD_SECONDS, this.#leaseMs / 3000);
    this.#watchSilence();
    await this.#pause(FIRST_HOLD_AFTER_MS);
    while (this.#lost === null && !this.#closed) {
      const sentAt = performance.now();
      await this.#repeatHeartbeat(holdSeconds, this.#heartbeats.signal);
      const isEarly = performance.now() - sentAt < Math.min(EARLY_PAUSE_MS, holdSeconds * 500);
      if (isEarly && !this.#hasNewlyDelivered())
        await this.#rest(Math.min(EARLY_PAUSE_MS, holdSeconds * 1000));
    }
  }

  /** Does not wait and does not fail. Sends at most two updates a second; of those in between, only the latest. */
  progress(progress: Progress): void {
    this.#updates.push({ progress });
  }

  /** Does not wait and does not fail. What the lease has used so far; members that are left out keep their values. */
  use(report: UsageReport): void {
    if (this.#isUsageRefused) return;
    this.#usage = { ...this.#usage, ...report };
    this.#updates.push({ usage: this.#usage });
  }

  /** What the lease has used, for its reply; undefined: nothing is known, or the broker has refused it. */
  get usage(): UsageReport | undefined {
    return this.#isUsageRefused ? undefined : this.#usage;
  }

  /** Sends the usage that the broker has not got yet: before a call that ends the lease and has none. Never rejects. */
  async reportUsage(timeoutMs = ANSWER_MS): Promise<void> {
    if (this.usage === this.#reportedUsage || this.#lost !== null) return;
    await this.#report({ usage: this.usage }, timeoutMs);
  }

  /** The broker has refused the usage of a call: it gets none from now on. */
  refuseUsage(error: unknown): void {
    if (this.#isUsageRefused) return;
    this.#isUsageRefused = true;
    this.#options.onUsageRefused?.(error);
  }

  /** Resolves once the broker has it. Throws {@link LeaseLostError}, or the broker's refusal. */
  async saveCheckpoint(checkpoint: Checkpoint | null, options: RetryOptions = {}): Promise<void> {
    await this.retry(() => this.#heartbeat({ checkpoint }, ANSWER_MS), options);
  }

  /** Repeats a call until it succeeds. Throws {@link LeaseLostError}, the broker's refusal, or the signal's reason. */
  async retry<T>(call: () => Promise<T>, { signal, until }: RetryOptions = {}): Promise<T> {
    for (let failures = 0; ; failures += 1) {
      if (this.#lost !== null) throw new LeaseLostError(this.#lost);
      if (this.#closed) throw CLOSED;
      signal?.throwIfAborted();
      try {
        return await call();
      } catch (error) {
        const verdict = this.judge(error);
        if (verdict.kind === "refused") throw error;
        if (until && performance.now() > until()) throw error;
        if (this.#lost === null) await this.#pause(this.#retryMs(verdict, failures));
      }
    }
  }

  /** Ends the lease after the question was asked. */
  parkQuestion(interruptId: string): void {
    this.#interruptId = interruptId;
    this.#lose("interrupted");
  }

  /** Ends the lease after the wait for children began. */
  parkForChildren(): void {
    this.#lose("awaiting");
  }

  /**
   * Waits at most `ms` for the answer to the held question. Ask the question again afterwards: the wait may also end early.
   */
  async answered(state: HoldingState, ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
    const held = new AbortController();
    const end = () => held.abort(CLOSED);
    this.#hold = { state, end };
    this.#endRest?.();
    const subscriptions = signals.map((signal) => onAbort(signal, end));
    await this.#pause(signals.some(({ aborted }) => aborted) ? 0 : ms, held.signal);
    this.#hold = undefined;
    for (const unsubscribe of subscriptions) unsubscribe();
  }

  /** Stops the handler without a loss: the worker is stopping. */
  stopHandler(reason: Error): void {
    if (!this.#settled) this.#abort(reason);
  }

  /** Call it when the handler is done. Resolves once progress in flight has arrived; waiting progress is dropped. */
  async handlerDone(): Promise<void> {
    this.#settled = true;
    this.followUps.end();
    await this.#updates.stop();
  }

  /**
   * Sends no further heartbeat. The broker answers a held one when the reply or release ends the lease, so its
   * connection stays usable; `atOnce` cuts it.
   */
  close(atOnce = false): void {
    this.#closed = true;
    clearInterval(this.#ticker);
    this.followUps.end();
    if (atOnce || this.#inFlight === 0) {
      this.#heartbeats.abort(CLOSED);
    } else {
      const timer = setTimeout(() => this.#heartbeats.abort(CLOSED), EARLY_PAUSE_MS);
      this.#heartbeats.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    }
  }

  /** Whether the error of a call says that the lease is lost. Ends the lease if it does. */
  judge(error: unknown): Verdict {
    const verdict = this.#transport.judge(error);
    if (verdict.kind === "lost") this.#lose(verdict.reason);
    return verdict;
  }

  /** Sends one heartbeat; repeats it until it is answered, the lease is lost, or the signal aborts. */
  async #repeatHeartbeat(holdSeconds: number, signal: AbortSignal): Promise<void> {
    for (let failures = 0; this.#lost === null && !this.#closed && !signal.aborted; failures += 1) {
      // A plain one is answered at once, and no quota refuses it.
      const heldMs = failures === 0 ? holdSeconds * 1000 : 0;
      const request = heldMs > 0 ? { wait_seconds: Math.round(heldMs) / 1000 } : {};
      try {
        await this.#heartbeat(request, heldMs + Math.min(ANSWER_MS, this.#leaseMs));
        this.#options.onAnswered?.();
        return;
      } catch (error) {
        const delayMs = error === PAUSED ? 0 : this.#delayMs(error, failures, signal);
        if (this.#lost === null) await this.#pause(delayMs, signal);
      }
    }
  }

  /** Never rejects. If the broker refuses the usage, the progress is sent without it. */
  async #report({ progress, usage }: Update, timeoutMs: number): Promise<void> {
    const given = this.#isUsageRefused ? undefined : usage;
    if (!progress && !given) return;
    try {
      await this.#heartbeat({ ...(progress && { progress }), ...(given && { usage: given }) }, timeoutMs);
      if (given) this.#reportedUsage = given;
    } catch (error) {
      const verdict = this.judge(error);
      if (!given || verdict.kind !== "refused" || !verdict.isForUsage) return;
      // A newer report may have come first; this one is less then.
      if (given === this.#usage) this.refuseUsage(error);
      await this.#report({ progress }, timeoutMs);
    }
  }

  async #heartbeat(request: HeartbeatInput, timeoutMs: number): Promise<void> {
    const sent = now();
    const { seen } = this.followUps;
    const body = {
      ...request,
      ...(this.#hasNewlyDelivered() && { seen }),
      ...(this.#hold && { in_state: this.#hold.state }),
    };
    const underWay = new AbortController();
    const unsubscribe = onAbort(this.#heartbeats.signal, () => underWay.abort(CLOSED));
    if (this.#heartbeats.signal.aborted) underWay.abort(CLOSED);
    if (request.progress === undefined && request.usage === undefined) this.#underWay = underWay;
    this.#inFlight += 1;
    try {
      const { state, messages, budget } = await this.#transport.heartbeat(body, {
        signal: underWay.signal,
        timeoutMs,
      });
      if (state === "working") this.#hold?.end();
      this.#acknowledged = seen;
      this.followUps.add(messages);
      if (budget) this.#learnBudget(budget);
      this.#silence.answered(sent);
    } catch (error) {
      throw underWay.signal.reason === PAUSED ? PAUSED : error;
    } finally {
      unsubscribe();
      this.#inFlight -= 1;
      if (this.#closed && this.#inFlight === 0) this.#heartbeats.abort(CLOSED);
    }
  }

  #learnBudget(budget: BudgetShown): void {
    this.#budget = budget;
    if (!budget.exceeded || this.#overBudget.signal.aborted) return;
    this.#overBudget.abort(new OverBudgetError(budget));
    this.#options.onOverBudget?.(budget);
  }

  /** Stops the handler when the broker is silent for too long, and asks at once after a pause of the process. */
  #watchSilence(): void {
    const ticker = setInterval(() => this.#tick(now()), this.#tickMs);
    this.#ticker = ticker;
    // In a browser it is a number.
    if (typeof ticker === "object") ticker.unref();
  }

  #tick(at: Moment): void {
    if (this.#silence.tick(at, this.#tickMs)) this.#underWay?.abort(PAUSED);
    if (!this.#mayBeCutOff || !this.#silence.isTooLong(at)) return;
    this.#cutHandlerOff(new CutOffError(this.#silence.ms(at)));
  }

  /** True if the newest delivered follow-up is not acknowledged yet; until it is, the broker holds no heartbeat. */
  #hasNewlyDelivered(): boolean {
    return this.followUps.seen !== this.#acknowledged;
  }

  /** The delay before a heartbeat is repeated. Reports a failure that outlasts the first repetition. */
  #delayMs(error: unknown, failures: number, signal: AbortSignal): number {
    const verdict = this.judge(error);
    const delayMs = this.#retryMs(verdict, failures);
    if (failures > 0 && verdict.kind === "retry" && !signal.aborted && !this.#closed)
      this.#options.onFailing?.(error, delayMs, this.#longestRetryMs);
    return delayMs;
  }

  #retryMs(verdict: Verdict, failures: number): number {
    const retryAfterMs = verdict.kind === "retry" ? verdict.retryAfterMs : undefined;
    const longestMs = this.#longestRetryMs;
    return Math.min(backoffMs(failures, retryAfterMs, longestMs), longestMs);
  }

  /** At most a sixth of the lease, so that several tries fit into it. */
  get #longestRetryMs(): number {
    return Math.min(this.#transport.longestRetryMs ?? LONGEST_MS, this.#leaseMs / 6);
  }

  #lose(reason: LostReason): void {
    if (this.#lost !== null || this.#closed) return;
    this.#lost = reason;
    clearInterval(this.#ticker);
    void this.#updates.stop();
    if (this.#settled) return;
    this.#abort(isParked(reason) ? new ParkedError(reason) : new LeaseLostError(reason));
  }

  #abort(reason: unknown): void {
    this.#cutHandlerOff(reason);
    this.#calls.abort(reason);
  }

  #cutHandlerOff(reason: unknown): void {
    this.followUps.end();
    this.#handler.abort(reason);
  }

  #failListener(error: unknown): void {
    if (this.#settled || this.#listenerFailure) return;
    this.#listenerFailure = { error };
    this.#abort(error);
  }

  /** A pause that ends when a follow-up is delivered. */
  async #rest(ms: number): Promise<void> {
    const rest = new AbortController();
    const end = () => rest.abort(CLOSED);
    const unsubscribe = onAbort(this.#heartbeats.signal, end);
    this.#endRest = end;
    await sleep(this.#heartbeats.signal.aborted ? 0 : ms, rest.signal).catch(() => undefined);
    this.#endRest = undefined;
    unsubscribe();
  }

  async #pause(ms: number, signal = this.#heartbeats.signal): Promise<void> {
    await sleep(Math.max(0, ms), signal).catch(() => undefined);
  }
}
