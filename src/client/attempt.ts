/**
 * One lease from receipt to its end: confirms it, runs the handler, and repeats the question or reply until the broker
 * accepts or refuses it, however long that takes.
 */
import * as z from "zod";
import { LeaseHolder } from "../lease-holder/lease-holder.ts";
import { CutOffError, isParked, type LostReason } from "../lease-holder/lost.ts";
import { textOf } from "../schema/a2a.ts";
import { type Lease, replySchema, type WorkerPause } from "../schema/lease.ts";
import { truncate } from "../schema/text.ts";
import type { Pause } from "../util/breaker.ts";
import { onAbort } from "../util/timing.ts";
import { Artifacts } from "./artifacts.ts";
import { Asker } from "./asker.ts";
import { Children } from "./children.ts";
import type { Delegator } from "./delegator.ts";
import { ErrandApiError, isInvalid } from "./errors.ts";
import { HandlerLimits, HandlerTimeoutError } from "./handler-limits.ts";
import {
  canceledTask,
  failedReply,
  type HandlerOutcome,
  messageAnswer,
  outcomeOf,
  refusedReply,
  Thrown,
} from "./handler-outcome.ts";
import { type Http, route } from "./http.ts";
import { isForUsage, leaseTransport } from "./lease-transport.ts";
import type { LoopWatch } from "./loop-watch.ts";
import type { Outage } from "./outage.ts";
import {
  type Answered,
  type AnsweredAll,
  type AskedQuestion,
  answersIn,
  type DataOfAsk,
  type MoreOfQuestion,
  QuestionOutcome,
  toInterrupt,
} from "./questions.ts";
import { WorkerUnavailableError } from "./unavailable.ts";
import { ChildrenWait } from "./wait-for.ts";
import {
  type AgentEvent,
  AgentStoppingError,
  BareMessage,
  type Handler,
  ReleaseOrCancel,
  type Reply,
  type Work,
} from "./work.ts";

/** All attempts of one agent share this. */
export interface WorkerContext {
  readonly http: Http;
  /** Uses the agent's own token. */
  readonly delegator: Delegator;
  readonly handler: Handler;
  readonly outage: Outage;
  readonly workerId: string;
  readonly returnedForSeconds: number;
  /** Whether handlers run on while the broker is silent. */
  readonly keepRunning: boolean;
  /** Aborts when the time that handlers have to stop is over: nothing waits for them after that. */
  readonly giveUp: AbortSignal;
  readonly report: (event: AgentEvent) => void;
  readonly timeoutSeconds: number | undefined;
  readonly idleTimeoutSeconds: number | undefined;
  readonly retryOn: (error: unknown) => boolean;
  readonly onError: (error: unknown, work: Work) => void;
  readonly tellsErrors: boolean;
  readonly loop: LoopWatch;
}

/** What one run tells its agent, which decides when the worker takes more work. */
export interface Turn {
  readonly began: () => void;
  /** It did the work, asked, or rejected it. */
  readonly worked: () => void;
  /** Returns the pause that this begins. */
  readonly unable: (error: WorkerUnavailableError) => Pause | undefined;
  /** Resolves once it is known whether the worker itself is at fault, and with the pause that this begins. */
  readonly failed: (reply: Reply) => Promise<Failed>;
  /** The lease request to send with the reply; undefined when no more work is wanted. */
  readonly next: () => object | undefined;
}

export interface Failed {
  readonly isOwnFault: boolean;
  readonly pause?: Pause | undefined;
}

export interface ReceivedLease {
  readonly lease: Lease;
  /** When the lease arrived, by `performance.now()`. */
  readonly receivedAt: number;
}

/** A lease that is not confirmed within this time returns to the queue, because its worker may have died. */
export const CONFIRM_SECONDS = 5;
const RELEASE_MS = 2000;
const LONGEST_PAUSE_SECONDS = 86_400;
const REASON_MAX = 200;
const DETAIL_MAX = 1024;

/** The reply itself may have ended the lease for these reasons: if its answer was lost, a repeat gets a `duplicate`. */
const MAYBE_OUR_REPLY: readonly LostReason[] = ["finished", "retried"];

export class Attempt {
  readonly #context: WorkerContext;
  readonly #lease: Lease;
  readonly #holder: LeaseHolder;
  readonly #artifacts: Artifacts;
  readonly #asker: Asker;
  readonly #wait: ChildrenWait;
  readonly #turn: Turn;
  #limits: HandlerLimits | undefined;

  constructor(context: WorkerContext, { lease, receivedAt }: ReceivedLease, turn: Turn) {
    const { http, outage, keepRunning } = context;
    this.#context = context;
    this.#lease = lease;
    this.#turn = turn;
    const transport = leaseTransport(http, lease.lease_id);
    this.#holder = new LeaseHolder(transport, lease, receivedAt, {
      keepRunning,
      onFailing: (...failure) => outage.heartbeatFailed(...failure),
      onAnswered: () => outage.heartbeatAnswered(),
      onUsageRefused: (error) => this.#reportUsageRefused(error),
      onOverBudget: (budget) =>
        context.report({ type: "over_budget", delegationId: lease.delegation.id, budget }),
    });
    this.#artifacts = new Artifacts(http, outage, this.#holder);
    this.#asker = new Asker(context, this.#holder, this.#artifacts);
    this.#wait = new ChildrenWait(context, this.#holder, this.#artifacts);
  }

  /** In how many milliseconds the handler is stopped, unless the broker answers; undefined if it is not. */
  get stopsInMs(): number | undefined {
    return this.#holder.stopsInMs;
  }

  /** Aborts the handler's signal; its lease is then released. */
  interrupt(): void {
    this.#holder.stopHandler(new AgentStoppingError("the agent is stopping"));
  }

  /** Returns whether the broker accepted a reply, and the next lease if the answer contained one. */
  async run(): Promise<{ readonly replied: boolean; readonly next?: ReceivedLease | undefined }> {
    const holder = this.#holder;
    try {
      const startedAt = performance.now();
      if (!(await holder.confirm())) return this.#leaseOver();
      if (holder.signal.aborted) return await this.#release();
      void holder.keepAlive();
      const work = this.#work();
      this.#context.report({ type: "leased", work });
      this.#turn.began();
      const unsubscribe = onAbort(holder.signal, () => this.#reportCutOff());
      const handled = await this.#handle(work);
      unsubscribe();
      await this.#asker.settled();
      await this.#wait.settled();
      await this.#artifacts.settled();
      await holder.handlerDone();
      if (holder.lost !== null) return this.#leaseOver(work);
      const { listenerFailure } = holder;
      const isTimeout = holder.signal.reason instanceof HandlerTimeoutError;
      const isStopped = holder.signal.aborted && !listenerFailure && !holder.cutOff && !isTimeout;
      if (handled === undefined || isStopped) return await this.#release();
      const outcome = listenerFailure ? new Thrown(listenerFailure.error) : handled;
      if (outcome instanceof WorkerUnavailableError) return await this.#return(outcome, work);
      if (outcome instanceof ReleaseOrCancel) return await this.#releaseOrCancel(outcome, work);
      const thrown = outcome instanceof Thrown ? { error: outcome.error } : undefined;
      if (thrown) this.#reportError(thrown.error, work);
      const reply =
        outcome instanceof Thrown
          ? failedReply(outcome.error, this.#mayRetry(outcome.error, work), this.#context.tellsErrors)
          : outcome instanceof QuestionOutcome
            ? await this.#ask(outcome)
            : outcome;
      if (reply === undefined) return holder.lost === null ? await this.#release() : this.#leaseOver(work);
      const { isOwnFault, pause } = await this.#judge(reply);
      if (holder.lost !== null) return this.#leaseOver(work);
      const accepted = await this.#reply(isOwnFault ? forAnotherAttempt(reply) : reply, pause);
      if (!accepted) return this.#leaseOver(work);
      const { state, next } = accepted;
      const durationMs = performance.now() - startedAt;
      this.#context.report({ type: "replied", work, reply: accepted.reply, ...thrown, state, durationMs });
      return { replied: true, next };
    } finally {
      holder.close();
    }
  }

  /** Aborts the heartbeat that the gateway is holding. */
  close(): void {
    this.#holder.close(true);
  }

  #work(): Work {
    const { delegation, request, attempt, lease_id, traceparent } = this.#lease;
    const { delegator } = this.#context;
    const { signal, followUps } = this.#holder;
    const children = new Children(delegator, this.#lease, signal);
    const answers = answersIn(delegation.history);
    /** A call is a sign of life, and so is its end. */
    const sign = <R>(returned: R): R => this.#limits?.sign(returned) ?? returned;
    const alive =
      <A extends readonly unknown[], R>(call: (...given: A) => R) =>
      (...given: A): R =>
        sign(call(...given));
    const held = this.#holder;
    return {
      delegation,
      text: textOf(delegation.message),
      message: request.params.message,
      attempt,
      leaseId: lease_id,
      request,
      traceparent,
      signal,
      history: delegation.history,
      answers,
      answer: [...answers.values()].at(-1),
      checkpoint: this.#lease.checkpoint,
      saveCheckpoint: alive((checkpoint) => handled(this.#holder.saveCheckpoint(checkpoint))),
      progress: alive((given) =>
        this.#holder.progress(typeof given === "string" ? { message: given } : given),
      ),
      usage: alive((report) => this.#holder.use(report)),
      get budget() {
        return held.budget;
      },
      overBudget: this.#holder.overBudget,
      artifact: alive((artifact, options) => this.#artifacts.send(artifact, options)),
      file: alive((name, content, options) => handled(this.#artifacts.file(name, content, options))),
      ask: <const Q extends string | AskedQuestion, const More extends MoreOfQuestion>(
        asked: Q,
        more?: More,
      ) => {
        const first: string | AskedQuestion = asked;
        const rest: MoreOfQuestion = more ?? {};
        const question = typeof first === "string" ? { text: first, ...rest } : { ...first, ...rest };
        return sign(handled(this.#asker.ask([question], question).then(only<DataOfAsk<Q, More>>)));
      },
      use: alive((answer) => handled(this.#asker.use(answer))),
      askAll: (asked, options = {}) =>
        sign(handled(this.#asker.ask(asked, options).then((all) => inOrder(asked, all)))),
      question: (asked, options = {}) =>
        new QuestionOutcome(toInterrupt(isList(asked) ? asked : [asked], options)),
      release: (options = {}) => new ReleaseOrCancel("release", options),
      bareMessage: (message) => new BareMessage(message),
      cancel: (text) => new ReleaseOrCancel("cancel", { reason: text }),
      messages: { [Symbol.asyncIterator]: () => followUps.read() },
      onMessage: (listener) => followUps.listen(listener),
      delegate: alive((input, options) => children.delegate(input, options)),
      waited: this.#wait.waited,
      waitFor: (given, options) => sign(handled(this.#wait.waitFor(given, options))),
      delegator,
    };
  }

  /** Returns the handler's result, or undefined when it did not stop in time. */
  #handle(work: Work): Promise<HandlerOutcome | undefined> {
    const { giveUp, handler, timeoutSeconds, idleTimeoutSeconds } = this.#context;
    return new Promise((resolve) => {
      const limits = new HandlerLimits({
        ...{ timeoutSeconds, idleTimeoutSeconds },
        onReached: (error) => {
          const { reason } = this.#holder.signal;
          this.#holder.stopHandler(error);
          // Another worker may have the work.
          end(reason instanceof CutOffError ? work.release({ reason: reason.message }) : new Thrown(error));
        },
      });
      this.#limits = limits;
      const end = (outcome: HandlerOutcome | undefined) => {
        limits.end();
        unsubscribe();
        resolve(outcome);
      };
      const unsubscribe = onAbort(giveUp, () => end(undefined));
      void outcomeOf(handler, work).then(end);
    });
  }

  /** Asks the question. Returns undefined when no reply is left to send, otherwise one that fails the delegation. */
  async #ask(outcome: QuestionOutcome): Promise<Reply | undefined> {
    const { giveUp } = this.#context;
    try {
      const raised = await this.#asker.raise(QuestionOutcome.interruptOf(outcome), giveUp);
      if (raised === undefined) return undefined;
      const ids = Object.keys(raised.answers ?? {}).join(", ");
      const message = `the handler asked a question that is already answered (${ids}); read work.answers`;
      return { state: "failed", error: { code: "agent_error", message: truncate(message, 4096) } };
    } catch (error) {
      if (giveUp.aborted) return undefined;
      if (isInvalid(error)) return refusedReply(error, "question");
      throw error;
    }
  }

  async #judge(outcome: Reply | BareMessage): Promise<Failed> {
    if (!(outcome instanceof BareMessage) && outcome.state === "failed") return this.#turn.failed(outcome);
    this.#turn.worked();
    return { isOwnFault: false };
  }

  /** Returns the work, because this worker cannot do any. */
  async #return(error: WorkerUnavailableError, work: Work) {
    const pause = this.#turn.unable(error);
    const reason = truncate(error.message.trim() || "the worker cannot work", REASON_MAX);
    const { delaySeconds = this.#context.returnedForSeconds, detail = reason } = error;
    const release = new ReleaseOrCancel("release", { delaySeconds, reason: truncate(detail, DETAIL_MAX) });
    return this.#releaseOrCancel(release, work, this.#pausedFor(pause?.ms ?? 0, reason));
  }

  #pausedFor(ms: number, reason: string): WorkerPause {
    const paused_seconds = Math.min(LONGEST_PAUSE_SECONDS, Math.round(ms) / 1000);
    return { id: this.#context.workerId, paused_seconds, reason };
  }

  /** Repeats the reply until the broker accepts it. Returns undefined when the lease was lost first. */
  async #reply(outcome: Reply | BareMessage, pause: Pause | undefined) {
    const { http, outage, giveUp } = this.#context;
    const worker = pause && this.#pausedFor(pause.ms, pause.reason);
    const { lease_id, delegation } = this.#lease;
    const bare = outcome instanceof BareMessage ? outcome : undefined;
    const wanted: Reply = outcome instanceof BareMessage ? outcome.reply : outcome;
    let reply = wanted;
    if (wanted.usage) this.#holder.use(wanted.usage);
    // Only the broker's own form of a reply has a usage.
    if (bare) await this.#holder.reportUsage();
    for (let failures = 0; !giveUp.aborted; failures += 1) {
      try {
        const call =
          bare && reply === wanted
            ? { path: repliesOf(delegation), body: messageAnswer(lease_id, bare.message) }
            : {
                path: route`/v1/leases/${lease_id}/reply`,
                body: { ...reply, usage: this.#holder.usage, worker, next: this.#turn.next() },
              };
        const answer = await http.request(replySchema, { method: "POST", ...call });
        outage.over();
        const lease = answer.leases?.[0];
        const received = lease && { lease, receivedAt: performance.now() };
        return { reply, state: answer.delegation.state, next: received };
      } catch (error) {
        if (isLeaseOver(error)) return undefined;
        if (isForUsage(error)) this.#holder.refuseUsage(error);
        else if (reply === wanted && isInvalid(error)) reply = refusedReply(error);
        else await outage.backOff(error, failures, giveUp);
      }
      const { lost } = this.#holder;
      if (lost !== null && !MAYBE_OUR_REPLY.includes(lost)) return undefined;
    }
    return undefined;
  }

  /** Repeats the release or cancel until the broker accepts it or the lease is lost. */
  async #releaseOrCancel(
    { kind, delaySeconds: delay_seconds = 0, reason }: ReleaseOrCancel,
    work: Work,
    worker?: WorkerPause,
  ) {
    const { http, outage, report } = this.#context;
    const { lease_id, delegation } = this.#lease;
    await this.#holder.reportUsage();
    const call =
      kind === "release"
        ? { path: route`/v1/leases/${lease_id}/release`, body: { delay_seconds, reason, worker } }
        : {
            path: repliesOf(delegation),
            body: canceledTask(lease_id, delegation.id, reason),
          };
    for (let failures = 0; this.#holder.lost === null && !this.#context.giveUp.aborted; failures += 1) {
      try {
        await http.request(z.unknown(), { method: "POST", ...call });
        outage.over();
        if (kind === "cancel") report({ type: "canceled", work });
        else report({ type: "released", delegationId: delegation.id, reason });
        return { replied: kind === "cancel" };
      } catch (error) {
        if (isLeaseOver(error)) break;
        if (isInvalid(error)) return await this.#release();
        await outage.backOff(error, failures, this.#context.giveUp);
      }
    }
    return this.#leaseOver(work);
  }

  #reportCutOff(): void {
    const { reason } = this.#holder.signal;
    if (!(reason instanceof CutOffError)) return;
    const { id } = this.#lease.delegation;
    this.#context.report({ type: "cut_off", delegationId: id, silentMs: reason.silentMs });
  }

  #leaseOver(work?: Work) {
    const { lost: reason, interruptId } = this.#holder;
    if (isParked(reason)) this.#turn.worked();
    if (work && isParked(reason)) {
      const waitsFor = reason === "awaiting" ? "children" : "answer";
      this.#context.report({ type: "parked", work, waitsFor, interruptId });
    } else
      this.#context.report({
        type: "lost",
        delegationId: this.#lease.delegation.id,
        reason: reason ?? "unknown",
        ...(reason === "expired" && { blockedMs: this.#context.loop.blockedWithin(this.#holder.leaseMs) }),
      });
    return { replied: false };
  }

  /** A callback that fails is an error of its own, and asks for nothing. */
  #mayRetry(error: unknown, work: Work): boolean {
    try {
      return this.#context.retryOn(error) === true;
    } catch (failure) {
      this.#reportError(failure, work);
      return false;
    }
  }

  /** The work goes on if the callback itself fails. */
  #reportError(error: unknown, work: Work): void {
    const report = (failure: unknown) => console.error("errand: onError failed:", failure);
    try {
      const returned: unknown = this.#context.onError(error, work);
      // It may be an async function all the same.
      if (returned instanceof Promise) returned.catch(report);
    } catch (failure) {
      report(failure);
    }
  }

  #reportUsageRefused(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#context.report({ type: "usage_refused", delegationId: this.#lease.delegation.id, reason });
  }

  async #release() {
    await this.#holder.reportUsage(RELEASE_MS);
    await tryRelease(this.#context, this.#lease);
    return { replied: false };
  }
}

const repliesOf = ({ target }: Lease["delegation"]): string => route`/v1/agents/${target}/replies`;

function forAnotherAttempt(reply: Reply | BareMessage): Reply | BareMessage {
  if (reply instanceof BareMessage || reply.error === undefined) return reply;
  return { ...reply, error: { ...reply.error, retryable: true } };
}

/** Tries once: if it fails, the lease expires by itself. */
export async function tryRelease(
  { http, report }: WorkerContext,
  lease: Lease,
  reason = "the worker is stopping",
): Promise<void> {
  const path = route`/v1/leases/${lease.lease_id}/release`;
  const body = { reason };
  const delegationId = lease.delegation.id;
  try {
    await http.request(z.unknown(), { method: "POST", path, body, timeoutMs: RELEASE_MS });
    report({ type: "released", delegationId });
  } catch {
    report({ type: "abandoned", delegationId });
  }
}

/** Prevents an unhandled rejection if the handler does not await the promise; the run ends in either case. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const isList = <T>(value: T | readonly T[]): value is readonly T[] => Array.isArray(value);

/** The answer to the only question. */
function only<Data>(answers: readonly Answered[]): Answered<Data> {
  const isOne = (given: readonly Answered[]): given is readonly [Answered<Data>] => given.length === 1;
  if (!isOne(answers)) throw new Error(`one question was asked, ${answers.length} were answered`);
  return answers[0];
}

/** Checks that there is one answer for each question, as the type promises. */
function inOrder<const Q extends readonly unknown[]>(asked: Q, answers: readonly Answered[]): AnsweredAll<Q> {
  const isWhole = (given: readonly Answered[]): given is AnsweredAll<Q> => given.length === asked.length;
  if (!isWhole(answers))
    throw new Error(`${asked.length} questions were asked, ${answers.length} were answered`);
  return answers;
}

function isLeaseOver(error: unknown): boolean {
  return error instanceof ErrandApiError && ["lease_lost", "lease_unknown"].includes(error.code);
}
