/**
 * A poll-mode agent: leases work, runs a handler, and replies; the answer to the reply contains the next work. Limit:
 * delivery is at least once; after a lease is lost, another worker may do the same work.
 */
import { leasesSchema } from "../schema/lease.ts";
import { backoffMs, MAX_TIMER_MS, onAbort, sleep } from "../util/timing.ts";
import { Attempt, CONFIRM_SECONDS, type ReceivedLease, tryRelease, type WorkerContext } from "./attempt.ts";
import { Delegator } from "./delegator.ts";
import { newWorkerId } from "./environment.ts";
import { type ConnectionOptions, Http, route } from "./http.ts";
import { Outage } from "./outage.ts";
import { type AgentEvent, AgentStoppingError, type Handler } from "./work.ts";

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
  /** How long work in progress may continue when the agent stops, in seconds; then its signal aborts. Default 0. */
  readonly drainSeconds?: number | undefined;
  /**
   * How many seconds handlers may take after their signal aborted; then their leases are released anyway. Default 10.
   */
  readonly stopWithinSeconds?: number | undefined;
  /** Called for each event, for a log. */
  readonly onEvent?: ((event: AgentEvent) => void) | undefined;
}

/** Long enough to be cheap, but below the idle timeout of common proxies. */
const POLL_SECONDS = 20;
const STOP_WITHIN_SECONDS = 10;

/**
 * A poll-mode agent, which needs only outbound HTTP. It confirms each lease within 5 s, extends it by heartbeats,
 * repeats a reply until the broker accepts it, and gets the next work with the answer. While the broker is unavailable
 * or overloaded (429 and 5xx), it backs off, for at least as long as Retry-After says.
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
  /** Aborts when the agent stops polling. */
  readonly #stopping = new AbortController();
  readonly #giveUp = new AbortController();
  #interrupted: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | undefined;
  #fatal: unknown;

  /** Sends no request yet. Throws `invalid_url`. */
  constructor(options: AgentOptions, handler: Handler) {
    this.#options = options;
    this.workerId = options.workerId ?? newWorkerId();
    const report = (event: AgentEvent) => options.onEvent?.(event);
    const next = () => (this.#stopping.signal.aborted || options.once ? undefined : this.#leaseRequest(0));
    const http = new Http(options);
    const outage = new Outage(http, report);
    // Handlers use it once the broker has been reached, so it does not fail fast.
    const delegator = new Delegator({ ...options, failFast: false });
    const giveUp = this.#giveUp.signal;
    this.#context = { http, delegator, handler, outage, next, giveUp, report };
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
    await Promise.all(Array.from({ length: once ? 1 : concurrency }, () => this.#slot()));
    off?.();
    clearTimeout(this.#interrupted);
    if (this.#fatal !== undefined) throw this.#fatal;
  }

  #interrupt(): void {
    const withinMs = (this.#options.stopWithinSeconds ?? STOP_WITHIN_SECONDS) * 1000;
    for (const attempt of this.#attempts) attempt.interrupt();
    this.#interrupted ??= setTimeout(() => this.#giveUp.abort(), withinMs);
  }

  /** Works on one delegation after another. Each slot polls on its own. */
  async #slot(): Promise<void> {
    let next: ReceivedLease | undefined;
    try {
      while (!this.#stopping.signal.aborted) {
        const received = next ?? (await this.#poll());
        next = received && (await this.#attempt(received));
      }
    } catch (error) {
      this.#fatal ??= error;
      void this.stop();
    }
    // The answer to the last reply contained a lease, but the agent is stopping.
    if (next) await tryRelease(this.#context, next.lease);
  }

  async #attempt(received: ReceivedLease): Promise<ReceivedLease | undefined> {
    const attempt = new Attempt(this.#context, received);
    this.#attempts.add(attempt);
    try {
      const { replied, next } = await attempt.run();
      if (replied && this.#options.once) void this.stop();
      return next;
    } finally {
      this.#attempts.delete(attempt);
      if (this.#stopping.signal.aborted) attempt.close();
    }
  }

  /** Returns a lease, or undefined when the wait ended or the agent stops. Throws errors that a retry cannot fix. */
  async #poll(): Promise<ReceivedLease | undefined> {
    const { http, outage } = this.#context;
    const signal = this.#stopping.signal;
    for (let failures = 0; !signal.aborted; failures += 1) {
      const askedAt = performance.now();
      try {
        const { leases } = await http.request(leasesSchema, {
          method: "POST",
          path: route`/v1/agents/${this.#options.agent}/leases`,
          body: this.#leaseRequest(POLL_SECONDS),
          holdSeconds: POLL_SECONDS,
          signal,
        });
        outage.over();
        const lease = leases[0];
        if (lease) return { lease, receivedAt: performance.now() };
        // A gateway that is shutting down answers early; do not spin on it.
        if (performance.now() - askedAt < 1000) await sleep(backoffMs(1), signal);
        return undefined;
      } catch (error) {
        if (!signal.aborted) await outage.backOff(error, failures, signal);
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
