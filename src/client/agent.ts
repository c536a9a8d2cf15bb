/**
 * A poll-mode agent: leases work, runs a handler, and replies; the answer to the reply contains the next work. Limit:
 * delivery is at least once; after a lease is lost, another worker may do the same work.
 */
import { leasesSchema } from "../schema/lease.ts";
import { Breaker, type BreakerOptions, type Permit } from "../util/breaker.ts";
import { backoffMs, MAX_TIMER_MS, onAbort, sleep } from "../util/timing.ts";
import {
  Attempt,
  CONFIRM_SECONDS,
  type Failed,
  type ReceivedLease,
  type Turn,
  tryRelease,
  type WorkerContext,
} from "./attempt.ts";
import { Delegator } from "./delegator.ts";
import { newWorkerId } from "./environment.ts";
import { ErrandApiError } from "./errors.ts";
import { type Connection, type ConnectionOptions, Http, route } from "./http.ts";
import { KnownBroker } from "./known-broker.ts";
import { LoopWatch } from "./loop-watch.ts";
import { Outage } from "./outage.ts";
import type { WorkerUnavailableError } from "./unavailable.ts";
import { type AgentEvent, AgentStoppingError, type Handler, type Reply, type Work } from "./work.ts";

export interface AgentOptions extends ConnectionOptions {
  /** The name of the agent to work for. It must exist, and the token must belong to `agent:<name>` or the operator. */
  readonly agent: string;
  /** How many delegations at once; default 1. Each slot polls on its own. */
  readonly concurrency?: number | undefined;
  /**
   * How long a lease lasts without a heartbeat, in seconds, 1 to 3600; default: the agent's `limits.lease_seconds`.
   * Heartbeats are sent automatically, at a third of that time.
   */
  readonly leaseSeconds?: number | undefined;
  /**
   * The name of this worker, shown with its leases and in the agent's list of workers: 1 to 128 printable ASCII
   * characters without spaces. Default: host name, process id and a random part, new for each `Agent`.
   */
  readonly workerId?: string | undefined;
  /** Whether to stop after replying to one delegation. Default false. */
  readonly once?: boolean | undefined;
  /**
   * Stops when nothing came for so many seconds: each slot then polls no more, and `run` resolves when all have ended. With 0 it
   * works on what waits, and stops. An outage of the broker does not end it. Default: it never stops by itself.
   */
  readonly stopWhenIdleSeconds?: number | undefined;
  /** How long work in progress may continue when the agent stops, in seconds; then its signal aborts. Default 0. */
  readonly drainSeconds?: number | undefined;
  /**
   * How many seconds handlers may take after their signal aborted; then their leases are released anyway. Default 10.
   */
  readonly stopWithinSeconds?: number | undefined;
  /**
   * Whether handlers run on while the broker does not answer, however long. Default false: after twice the length of the
   * lease their signal aborts, because another worker may have the work by then. With true, the side effects of a
   * delegation may happen twice; its result still counts once.
   */
  readonly keepRunning?: boolean | undefined;
  /**
   * How long a handler may run, in seconds. Then its signal aborts, and the delegation fails with `handler_timeout`.
   * Default: as long as the delegation's deadline allows.
   */
  readonly timeoutSeconds?: number | undefined;
  /**
   * How long a handler may run without a sign of life, in seconds: progress, usage, an artifact, a checkpoint, a question
   * or a part that it delegates. Then the same follows. While such a call waits for the broker or for an answer, it is not
   * idle; a wait of its own, as for the end of a part, counts. Default: no limit.
   */
  readonly idleTimeoutSeconds?: number | undefined;
  /**
   * Whether an error that a handler threw is worth another attempt, while one is left. Default: no error is. If it throws,
   * `onError` gets that, too.
   */
  readonly retryOn?: ((error: unknown) => boolean) | undefined;
  /**
   * Called with each error that fails a delegation: thrown by the handler or by a listener, or a timeout. Default: it is
   * printed to stderr with its stack.
   */
  readonly onError?: ((error: unknown, work: Work) => void) | undefined;
  /**
   * Called for each event, for a log. Default: an expiry because this process was blocked, and a refused usage, are printed
   * to stderr.
   */
  readonly onEvent?: ((event: AgentEvent) => void) | undefined;
}

const printError = (error: unknown, { delegation }: Work): void =>
  console.error(`errand: the handler failed at ${delegation.id}:`, error);

/** Without it, nobody would know why the lease expired, or that the usage no longer counts. */
function printNotable(event: AgentEvent): void {
  if (event.type === "usage_refused") {
    console.error(`errand: no more usage of ${event.delegationId} is reported: ${event.reason}`);
    return;
  }
  if (event.type !== "lost" || event.blockedMs === undefined) return;
  const { delegationId, blockedMs } = event;
  console.error(`errand: the lease of ${delegationId} expired: this process was blocked for ${blockedMs} ms`);
}

/** Long enough to be cheap, but below the idle timeout of common proxies. */
const POLL_SECONDS = 20;
const STOP_WITHIN_SECONDS = 10;

/** Other work goes first meanwhile: what was returned may itself be at fault, and other workers may be in the same state. */
const RETURNED_FOR_SECONDS = 10;

/** A handler that says whether another attempt may help is believed. */
const blameOf = ({ error }: Reply): Blame => (error?.retryable === undefined ? "suspect" : "final");

/** What a failed reply says about the worker: `task` nothing, `final` and `suspect` that the worker may be at fault. */
type Blame = "task" | "final" | "suspect";

/** For the programs of this project, and tests. */
export interface AgentInternals extends Pick<BreakerOptions, "now" | "sleep" | "longestPauseMs"> {
  /** Failures with `suspect` ask for another attempt if the worker is at fault. Default: unless they have `retryable`. */
  readonly blame?: ((reply: Reply) => Blame) | undefined;
  /** How long work stays in the queue that was returned because the worker cannot do any. */
  readonly returnedForSeconds?: number | undefined;
  /** Errors that the handler throws are meant for the delegator: it gets their message, and they are not printed. */
  readonly tellsErrors?: boolean | undefined;
}

/** No connection was made: what is sent makes no difference. */
const isUnreached = (error: unknown): boolean =>
  error instanceof ErrandApiError && error.code === "unreachable";

/** It counts polls: one more would be refused, too. */
const isRateLimit = (error: unknown): boolean => error instanceof ErrandApiError && error.status === 429;

/** Runs that began while a failed one waits to learn whether the worker itself is at fault. */
type Inner = Promise<ReceivedLease | undefined>;

/**
 * A poll-mode agent, which needs only outbound HTTP. It confirms each lease within 5 s, extends it by heartbeats,
 * repeats a reply until the broker accepts it, and gets the next work with the answer. While the broker is unavailable
 * or overloaded (429 and 5xx), it backs off, for at least as long as Retry-After says. If its handler fails several times
 * in a row, fast, or cannot work at all, it pauses, longer each time, and then tries one delegation; see {@link Handler}.
 *
 * @example
 * ```ts
 * const agent = new Agent({ agent: "scout", concurrency: 4 }, async (work) => {
 *   work.progress("counting");
 *   return String(work.text.split(/\s+/).length);
 * });
 * process.once("SIGTERM", () => agent.stop(30));
 * await agent.run();
 * ```
 */
export class Agent {
  /** The name of this worker: the option, or its default. */
  readonly workerId: string;
  readonly #options: AgentOptions;
  readonly #context: WorkerContext;
  readonly #attempts = new Set<Attempt>();
  readonly #loop = new LoopWatch();
  /** One for all slots: what breaks one of them breaks all. */
  readonly #breaker: Breaker;
  readonly #blame: (reply: Reply) => Blame;
  /** Aborts when the agent stops polling. */
  readonly #stopping = new AbortController();
  readonly #giveUp = new AbortController();
  #interrupted: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | undefined;
  #fatal: unknown;

  /** Sends no request yet. Throws `invalid_url`. `internals` is for tests. */
  constructor(
    options: AgentOptions & Pick<Connection, "known">,
    handler: Handler,
    internals: AgentInternals = {},
  ) {
    this.#options = options;
    this.workerId = options.workerId ?? newWorkerId();
    const report = options.onEvent ?? printNotable;
    const connection = { ...options, known: options.known ?? new KnownBroker() };
    // The files of a lease are worth as much as its reply, which is repeated without a limit, too.
    const http = new Http({ ...connection, retryForMs: Number.POSITIVE_INFINITY });
    const outage = new Outage(http, report, () => this.#stopsInMs());
    // Handlers use it once the broker has been reached, so it does not fail fast, and an outage must not fail their work.
    const { retryForMs = Number.POSITIVE_INFINITY } = options;
    const delegator = new Delegator({ ...connection, failFast: false, retryForMs });
    const giveUp = this.#giveUp.signal;
    const { returnedForSeconds = RETURNED_FOR_SECONDS, blame = blameOf, tellsErrors = false } = internals;
    this.#blame = blame;
    const { keepRunning = false, timeoutSeconds, idleTimeoutSeconds } = options;
    const { retryOn = () => false, onError = tellsErrors ? () => undefined : printError } = options;
    this.#context = {
      ...{ http, delegator, handler, outage, keepRunning, giveUp, report, returnedForSeconds },
      ...{
        timeoutSeconds,
        idleTimeoutSeconds,
        retryOn,
        onError,
        tellsErrors,
        loop: this.#loop,
        workerId: this.workerId,
      },
    };
    this.#breaker = new Breaker({
      now: internals.now,
      sleep: internals.sleep,
      longestPauseMs: internals.longestPauseMs,
      onPause: ({ ms, reason }) => report({ type: "paused", delayMs: ms, reason }),
      onResume: () => report({ type: "resumed" }),
    });
  }

  /**
   * Works until {@link stop} is called or the signal aborts. An error that no retry fixes (`unauthenticated`,
   * `agent_unknown`, `unreachable` at the start) also stops it, and is thrown once the leases are released. Another
   * call returns the promise of the same run.
   */
  run(signal?: AbortSignal): Promise<void> {
    this.#running ??= this.#run(signal);
    return this.#running;
  }

  /**
   * Stops polling. Work in progress may continue for `drainSeconds` (default: the option of that name); then its signal
   * aborts, and it is released, which costs no attempt. Resolves when all work has ended. A second call can shorten the
   * time.
   */
  async stop(drainSeconds = this.#options.drainSeconds ?? 0): Promise<void> {
    this.#stopping.abort(new AgentStoppingError("the agent is stopping"));
    const drained = setTimeout(() => this.#interrupt(), Math.min(drainSeconds * 1000, MAX_TIMER_MS));
    if (drainSeconds <= 0) this.#interrupt();
    await this.#running?.catch(() => undefined);
    clearTimeout(drained);
  }

  async #run(signal?: AbortSignal): Promise<void> {
    const off = signal && onAbort(signal, () => void this.stop());
    if (signal?.aborted) void this.stop();
    const { concurrency = 1, once } = this.#options;
    this.#loop.start();
    await Promise.all(Array.from({ length: once ? 1 : concurrency }, () => this.#slot()));
    off?.();
    this.#loop.stop();
    clearTimeout(this.#interrupted);
    if (this.#fatal !== undefined) throw this.#fatal;
  }

  #interrupt(): void {
    const withinMs = (this.#options.stopWithinSeconds ?? STOP_WITHIN_SECONDS) * 1000;
    for (const attempt of this.#attempts) attempt.interrupt();
    this.#interrupted ??= setTimeout(() => this.#giveUp.abort(), withinMs);
  }

  /** When the first running handler is stopped, unless the broker answers. */
  #stopsInMs(): number | undefined {
    const all = [...this.#attempts].map(({ stopsInMs }) => stopsInMs).filter((ms) => ms !== undefined);
    return all.length === 0 ? undefined : Math.min(...all);
  }

  /** Works on one delegation after another. Each slot polls on its own. */
  async #slot(): Promise<void> {
    const { signal } = this.#stopping;
    let next: ReceivedLease | undefined;
    let idleSince = performance.now();
    try {
      while (!signal.aborted) {
        // Another slot has found out since that this worker must pause.
        if (next && this.#breaker.isOpen) await tryRelease(this.#context, next.lease, "the worker pauses");
        if (this.#breaker.isOpen) next = undefined;
        const permit = await this.#breaker.enter(signal).catch(() => undefined);
        if (permit === undefined) break;
        const received: ReceivedLease | undefined =
          next ?? (await this.#poll(permit, this.#holdSeconds(idleSince)));
        next = undefined;
        if (received === undefined) {
          this.#breaker.leave(permit);
          if (this.#idleLeftMs(idleSince) <= 0) break;
        } else {
          next = await this.#work(received, permit);
          idleSince = performance.now();
        }
      }
    } catch (error) {
      this.#fatal ??= error;
      void this.stop();
    }
    // The answer to the last reply contained a lease, but the agent is stopping.
    if (next) await tryRelease(this.#context, next.lease);
  }

  /** How long a slot may still wait for work before it ends. */
  #idleLeftMs(idleSince: number): number {
    const { stopWhenIdleSeconds: most = Number.POSITIVE_INFINITY } = this.#options;
    return most * 1000 - (performance.now() - idleSince);
  }

  #holdSeconds(idleSince: number): number {
    return Math.min(POLL_SECONDS, Math.max(0, Math.ceil(this.#idleLeftMs(idleSince) / 1000)));
  }

  /** Works on a delegation, and on those that it takes before the reply to find out whether a failure is its own fault. */
  async #work(received: ReceivedLease, permit: Permit): Promise<ReceivedLease | undefined> {
    const inner: Inner[] = [];
    let next = await this.#attempt(received, permit, inner);
    for (const one of inner) next = (await one) ?? next;
    return next;
  }

  async #attempt(
    received: ReceivedLease,
    permit: Permit,
    inner: Inner[],
  ): Promise<ReceivedLease | undefined> {
    const attempt = new Attempt(this.#context, received, this.#turn(received, permit, inner));
    this.#attempts.add(attempt);
    try {
      const { replied, next } = await attempt.run();
      if (replied && this.#options.once) void this.stop();
      return next;
    } finally {
      this.#breaker.leave(permit);
      this.#attempts.delete(attempt);
      if (this.#stopping.signal.aborted) attempt.close();
    }
  }

  #turn({ lease }: ReceivedLease, permit: Permit, inner: Inner[]): Turn {
    const breaker = this.#breaker;
    const { id } = lease.delegation;
    const begunBefore = inner.length;
    return {
      began: () => breaker.began(permit),
      worked: () => void breaker.end(permit, { kind: "worked" }),
      unable: ({ message: reason, retryAfterSeconds }: WorkerUnavailableError) => {
        const retryAfterMs = retryAfterSeconds && retryAfterSeconds * 1000;
        return breaker.end(permit, { kind: "unable", id, reason, retryAfterMs });
      },
      failed: (reply) => this.#failed(reply, id, permit, inner),
      next: () => {
        const { once } = this.#options;
        // The last run that this slot began asks for more.
        const isLast = inner.length === begunBefore;
        if (once || !isLast || this.#stopping.signal.aborted || breaker.isOpen) return undefined;
        return this.#leaseRequest(0);
      },
    };
  }

  async #failed(reply: Reply, id: string, permit: Permit, inner: Inner[]): Promise<Failed> {
    const breaker = this.#breaker;
    const { signal } = this.#stopping;
    const blame = this.#blame(reply);
    if (blame === "task") {
      breaker.end(permit, { kind: "worked" });
      return { isOwnFault: false };
    }
    const isFast = breaker.isFast(permit);
    const pause = breaker.end(permit, { kind: "failed", id, code: reply.error?.code ?? "agent_error" });
    if (blame === "final" || !isFast) return { isOwnFault: false, pause };
    if (breaker.isOpen) return { isOwnFault: true, pause };
    if (this.#options.once || signal.aborted || !breaker.isSuspicious) return { isOwnFault: false };
    const another = await this.#takeAnother(inner);
    return { isOwnFault: another ? await breaker.isOwnFault(another.run, signal) : breaker.isOpen };
  }

  /** Begins to work on another delegation, if there is one. */
  async #takeAnother(inner: Inner[]): Promise<{ readonly run: Inner } | undefined> {
    const permit = await this.#breaker.enter(this.#stopping.signal).catch(() => undefined);
    if (permit === undefined) return undefined;
    // An error comes again at the next poll.
    const received = await this.#poll(permit, 0, { isOnlyTry: true }).catch(() => undefined);
    if (received === undefined) {
      this.#breaker.leave(permit);
      return undefined;
    }
    const run = this.#attempt(received, permit, inner);
    run.catch(() => undefined);
    inner.push(run);
    return { run };
  }

  /** Returns a lease, or undefined when the wait ended or the agent stops. Throws errors that a retry cannot fix. */
  async #poll(
    { signal }: Permit,
    waitSeconds: number,
    { isOnlyTry = false } = {},
  ): Promise<ReceivedLease | undefined> {
    const { http, outage } = this.#context;
    /** The next poll is not held, so that its answer shows at once that an outage is over. */
    let isProbe = false;
    /** False while only held polls seem to fail, as behind a proxy that ends them. */
    let mayProbe = true;
    let failures = 0;
    while (!signal.aborted) {
      const askedAt = performance.now();
      const holdSeconds = isProbe ? 0 : http.holdSeconds(waitSeconds);
      try {
        const { leases } = await http.request(leasesSchema, {
          method: "POST",
          path: route`/v1/agents/${this.#options.agent}/leases`,
          body: this.#leaseRequest(holdSeconds),
          holdSeconds,
          signal,
        });
        outage.over();
        const lease = leases[0];
        if (lease) return { lease, receivedAt: performance.now() };
        if (holdSeconds < waitSeconds) {
          [isProbe, mayProbe] = [false, !isProbe];
          continue;
        }
        // A gateway that is shutting down answers early; do not spin on it.
        if (waitSeconds > 0 && performance.now() - askedAt < 1000) await sleep(backoffMs(1), signal);
        return undefined;
      } catch (error) {
        if (isOnlyTry) throw error;
        mayProbe ||= isUnreached(error);
        isProbe = mayProbe && !isRateLimit(error);
        if (!signal.aborted) await outage.backOff(error, failures, signal);
        failures += 1;
      }
    }
    return undefined;
  }

  #leaseRequest(waitSeconds: number): object {
    const { leaseSeconds } = this.#options;
    return {
      wait_seconds: waitSeconds,
      confirm_within_seconds: CONFIRM_SECONDS,
      ...(leaseSeconds !== undefined && { lease_seconds: leaseSeconds }),
      worker_id: this.workerId,
    };
  }
}
