/**
 * One lease from receipt to its end: confirms it, runs the handler, and repeats the question or reply until the broker has
 * it. If the broker cannot be reached, the lease expires by itself.
 */
import * as z from "zod";
import { LeaseHolder } from "../lease-holder/lease-holder.ts";
import type { LostReason } from "../lease-holder/lost.ts";
import { textOf } from "../schema/a2a.ts";
import { type Lease, replySchema } from "../schema/lease.ts";
import { truncate } from "../schema/text.ts";
import { onAbort } from "../util/timing.ts";
import { Artifacts } from "./artifacts.ts";
import { Asker } from "./asker.ts";
import { Children } from "./children.ts";
import type { Delegator } from "./delegator.ts";
import { ErrandApiError, isInvalid } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { leaseTransport } from "./lease-transport.ts";
import type { Outage } from "./outage.ts";
import { providerError } from "./provider-errors.ts";
import { type Answered, type AnsweredAll, Asking, answersIn, toInterrupt } from "./questions.ts";
import { type AgentEvent, AgentStoppingError, type Handler, Leaving, type Reply, type Work } from "./work.ts";

/** What all attempts of one agent share. */
export interface WorkerContext {
  readonly http: Http;
  /** With the agent's own token. */
  readonly delegator: Delegator;
  readonly handler: Handler;
  readonly outage: Outage;
  /** The lease request to send with a reply; undefined when no more work is wanted. */
  readonly next: () => object | undefined;
  /** Aborts when handlers have had their time to stop: nothing waits for them any more. */
  readonly giveUp: AbortSignal;
  readonly report: (event: AgentEvent) => void;
}

export interface ReceivedLease {
  readonly lease: Lease;
  /** By the local monotonic clock. */
  readonly receivedAt: number;
}

/** A lease that is not confirmed within this goes back to the queue: its worker may have died. */
export const CONFIRM_SECONDS = 5;
const RELEASE_MS = 2000;

/** Perhaps this reply ended the lease and its answer was lost: then a repeat is answered `duplicate`. */
const MAYBE_OUR_REPLY: readonly LostReason[] = ["finished", "retried"];

export class Attempt {
  readonly #context: WorkerContext;
  readonly #lease: Lease;
  readonly #holder: LeaseHolder;
  readonly #artifacts: Artifacts;
  readonly #asker: Asker;

  constructor(desk: WorkerContext, held: ReceivedLease) {
    this.#context = desk;
    this.#lease = held.lease;
    this.#holder = new LeaseHolder(
      leaseTransport(desk.http, held.lease.lease_id),
      held.lease,
      held.receivedAt,
    );
    this.#artifacts = new Artifacts(desk.http, desk.outage, this.#holder);
    this.#asker = new Asker(desk, this.#holder, this.#artifacts);
  }

  /** Stops the handler; its lease then goes back. */
  interrupt(): void {
    this.#holder.interrupt(new AgentStoppingError("the agent is stopping"));
  }

  /** Whether the broker accepted a reply, and the lease that came with its answer, if any. */
  async run(): Promise<{ readonly replied: boolean; readonly next?: ReceivedLease | undefined }> {
    const holder = this.#holder;
    try {
      const startedAt = performance.now();
      if (!(await holder.confirm(CONFIRM_SECONDS * 1000))) return this.#gone();
      if (holder.signal.aborted) return await this.#release();
      void holder.keep();
      const work = this.#work();
      this.#context.report({ type: "leased", work });
      const outcome = await this.#handle(work);
      await this.#asker.settled();
      await this.#artifacts.settled();
      await holder.settle();
      const { listenerFailure: broken } = holder;
      if (holder.lost !== null) return this.#gone(work);
      if (outcome === undefined || (holder.signal.aborted && !broken)) return await this.#release();
      if (outcome instanceof Leaving && !broken) return await this.#leave(outcome, work);
      const reply = broken
        ? failedReply(broken.error)
        : outcome instanceof Asking
          ? await this.#ask(outcome)
          : outcome instanceof Leaving
            ? undefined
            : outcome;
      if (reply === undefined) return holder.lost === null ? await this.#release() : this.#gone(work);
      const taken = await this.#reply(reply);
      if (!taken) return this.#gone(work);
      const durationMs = performance.now() - startedAt;
      this.#context.report({ type: "replied", work, reply: taken.reply, state: taken.state, durationMs });
      return { replied: true, next: taken.next };
    } finally {
      holder.close();
    }
  }

  /** Cuts the held heartbeat. */
  close(): void {
    this.#holder.close(true);
  }

  #work(): Work {
    const { delegation, request, attempt, lease_id, traceparent } = this.#lease;
    const { delegator } = this.#context;
    const { signal, followUps } = this.#holder;
    const children = new Children(delegator, this.#lease, signal);
    const answers = answersIn(delegation.history);
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
      saveCheckpoint: (checkpoint) => handled(this.#holder.saveCheckpoint(checkpoint)),
      progress: (said) => this.#holder.progress(typeof said === "string" ? { message: said } : said),
      artifact: (artifact, options) => this.#artifacts.send(artifact, options),
      ask: (asked, more = {}) => {
        const question = typeof asked === "string" ? { text: asked, ...more } : { ...asked, ...more };
        return handled(this.#asker.ask([question], question).then((all) => inOrder([question], all)[0]));
      },
      askAll: (asked, options = {}) =>
        handled(this.#asker.ask(asked, options).then((all) => inOrder(asked, all))),
      question: (asked, options = {}) => new Asking(toInterrupt(isList(asked) ? asked : [asked], options)),
      release: (options = {}) => new Leaving("release", options),
      cancel: (text) => new Leaving("cancel", { reason: text }),
      messages: { [Symbol.asyncIterator]: () => followUps.read() },
      onMessage: (listener) => followUps.listen(listener),
      delegate: (input, options) => children.delegate(input, options),
      delegator,
    };
  }

  /** The handler's result; undefined when it did not stop in time. */
  #handle(work: Work): Promise<Reply | Asking | Leaving | undefined> {
    const { giveUp, handler } = this.#context;
    return new Promise((resolve) => {
      const stay = onAbort(giveUp, () => resolve(undefined));
      void outcomeOf(handler, work).then((reply) => {
        stay();
        resolve(reply);
      });
    });
  }

  /** Undefined when the lease is over, as it should be; a reply when nothing is left to wait for. */
  async #ask(asking: Asking): Promise<Reply | undefined> {
    const { giveUp } = this.#context;
    try {
      const raised = await this.#asker.raise(Asking.interruptOf(asking), giveUp);
      if (raised === undefined) return undefined;
      const ids = Object.keys(raised.answers ?? {}).join(", ");
      return failedReply(
        new Error(`the handler asks a question that was already answered (${ids}); read work.answers`),
      );
    } catch (error) {
      if (giveUp.aborted) return undefined;
      if (isInvalid(error)) return refusedReply(error, "question");
      throw error;
    }
  }

  /** Repeats the reply until the broker accepts it; undefined when the lease was lost first. */
  async #reply(wanted: Reply) {
    const { http, outage, next, giveUp } = this.#context;
    const path = route`/v1/leases/${this.#lease.lease_id}/reply`;
    let reply = wanted;
    for (let failures = 0; !giveUp.aborted; failures += 1) {
      try {
        const body = { ...reply, next: next() };
        const answer = await http.request(replySchema, { method: "POST", path, body });
        outage.over();
        const lease = answer.leases?.[0];
        const held = lease && { lease, receivedAt: performance.now() };
        return { reply, state: answer.delegation.state, next: held };
      } catch (error) {
        if (isGone(error)) return undefined;
        if (reply === wanted && isInvalid(error)) reply = refusedReply(error);
        else await outage.backOff(error, failures, giveUp);
      }
      const { lost } = this.#holder;
      if (lost !== null && !MAYBE_OUR_REPLY.includes(lost)) return undefined;
    }
    return undefined;
  }

  /** Repeats the release or cancel until the broker accepts it or the lease is lost. */
  async #leave(leaving: Leaving, work: Work) {
    const { http, outage, report } = this.#context;
    const { lease_id, delegation } = this.#lease;
    const { delaySeconds: delay_seconds = 0, reason } = leaving;
    const call =
      leaving.kind === "release"
        ? { path: route`/v1/leases/${lease_id}/release`, body: { delay_seconds, reason } }
        : {
            path: route`/v1/agents/${delegation.target}/replies`,
            body: canceledTask(lease_id, delegation.id, reason),
          };
    for (let failures = 0; this.#holder.lost === null && !this.#context.giveUp.aborted; failures += 1) {
      try {
        await http.request(z.unknown(), { method: "POST", ...call });
        outage.over();
        if (leaving.kind === "cancel") report({ type: "canceled", work });
        else report({ type: "released", delegationId: delegation.id, reason });
        return { replied: leaving.kind === "cancel" };
      } catch (error) {
        if (isGone(error)) break;
        if (isInvalid(error)) return await this.#release();
        await outage.backOff(error, failures, this.#context.giveUp);
      }
    }
    return this.#gone(work);
  }

  #gone(work?: Work) {
    const { lost: reason, interruptId } = this.#holder;
    if (work && reason === "interrupted") this.#context.report({ type: "parked", work, interruptId });
    else
      this.#context.report({
        type: "lost",
        delegationId: this.#lease.delegation.id,
        reason: reason ?? "unknown",
      });
    return { replied: false };
  }

  async #release() {
    await giveBack(this.#context, this.#lease);
    return { replied: false };
  }
}

/** Tries once: if it fails, the lease expires by itself. */
export async function giveBack(desk: WorkerContext, lease: Lease): Promise<void> {
  const path = route`/v1/leases/${lease.lease_id}/release`;
  const body = { reason: "the worker is stopping" };
  const delegationId = lease.delegation.id;
  try {
    await desk.http.request(z.unknown(), { method: "POST", path, body, timeoutMs: RELEASE_MS });
    desk.report({ type: "released", delegationId });
  } catch {
    desk.report({ type: "abandoned", delegationId });
  }
}

async function outcomeOf(handler: Handler, work: Work): Promise<Reply | Asking | Leaving> {
  try {
    const outcome = await handler(work);
    if (typeof outcome === "string") return { state: "completed", text: outcome };
    return outcome ?? { state: "completed" };
  } catch (error) {
    return failedReply(error);
  }
}

function failedReply(error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  const failure = { code: "agent_error", message: truncate(message, 4096) };
  return { state: "failed", error: { ...failure, ...providerError(error) } };
}

/** A canceled A2A Task: the only form in which an agent can cancel. */
function canceledTask(leaseId: string, id: string, text: string | undefined): object {
  const message = { messageId: `${id}.canceled`, role: "ROLE_AGENT", parts: [{ text }] };
  const status = { state: "TASK_STATE_CANCELED", ...(text !== undefined && { message }) };
  return { jsonrpc: "2.0", id: leaseId, result: { task: { id, status } } };
}

/** The run ends either way, so a caller that does not await this must not cause an unhandled rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const isList = <T>(value: T | readonly T[]): value is readonly T[] => Array.isArray(value);

/** One answer for each question, as the type says. */
function inOrder<const Q extends readonly unknown[]>(asked: Q, answers: readonly Answered[]): AnsweredAll<Q> {
  const isWhole = (given: readonly Answered[]): given is AnsweredAll<Q> => given.length === asked.length;
  if (!isWhole(answers))
    throw new Error(`${asked.length} questions were asked, ${answers.length} were answered`);
  return answers;
}

function isGone(error: unknown): boolean {
  return error instanceof ErrandApiError && ["lease_lost", "lease_unknown"].includes(error.code);
}

/** Fails the delegation, which would otherwise wait for a reply that the broker never accepts. */
function refusedReply({ code, message }: ErrandApiError, what = "reply"): Reply {
  return { state: "failed", error: { code, message: `the broker refused the agent's ${what}: ${message}` } };
}
