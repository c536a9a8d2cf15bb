/**
 * One lease from receipt to its end: confirm, run the handler, ask or reply until that is taken.
 * Limit: whatever cannot be told to the broker is left to the lease's expiry.
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

/** What an agent lends to each of its attempts. */
export interface Desk {
  readonly http: Http;
  /** With the agent's own token. */
  readonly delegator: Delegator;
  readonly handler: Handler;
  readonly outage: Outage;
  /** The body of a request for more, to go along with a reply; nothing when no more is wanted. */
  readonly next: () => object | undefined;
  /** Aborts when handlers that have not stopped by now are left alone. */
  readonly leaving: AbortSignal;
  readonly tell: (event: AgentEvent) => void;
}

export interface Held {
  readonly lease: Lease;
  /** By the local monotonic clock. */
  readonly receivedAt: number;
}

/** Within this a lease must be confirmed, or it goes back: its reader may have died silently. */
export const CONFIRM_SECONDS = 5;
const RELEASE_MS = 2000;

/** `finished`, `retried`: perhaps by this very reply, its answer lost; asking again says `duplicate`. */
const PERHAPS_OURS: readonly LostReason[] = ["finished", "retried"];

export class Attempt {
  readonly #desk: Desk;
  readonly #lease: Lease;
  readonly #holder: LeaseHolder;
  readonly #artifacts: Artifacts;
  readonly #asker: Asker;

  constructor(desk: Desk, held: Held) {
    this.#desk = desk;
    this.#lease = held.lease;
    this.#holder = new LeaseHolder(
      leaseTransport(desk.http, held.lease.lease_id),
      held.lease,
      held.receivedAt,
    );
    this.#artifacts = new Artifacts(desk.http, desk.outage, this.#holder);
    this.#asker = new Asker(desk, this.#holder, this.#artifacts);
  }

  /** Tells the handler to stop; its lease then goes back. */
  interrupt(): void {
    this.#holder.interrupt(new AgentStoppingError("the agent is stopping"));
  }

  /** Whether a reply was taken, and the lease that came with its answer, if one did. */
  async run(): Promise<{ readonly replied: boolean; readonly next?: Held | undefined }> {
    const holder = this.#holder;
    try {
      const startedAt = performance.now();
      if (!(await holder.confirm(CONFIRM_SECONDS * 1000))) return this.#gone();
      if (holder.signal.aborted) return await this.#release();
      void holder.keep();
      const work = this.#work();
      this.#desk.tell({ type: "leased", work });
      const outcome = await this.#handle(work);
      await this.#asker.settled();
      await this.#artifacts.settled();
      await holder.settle();
      const { listenerFailure: broken } = holder;
      if (holder.lost !== null) return this.#gone(work);
      if (outcome === undefined || (holder.signal.aborted && !broken)) return await this.#release();
      if (outcome instanceof Leaving && !broken) return await this.#leave(outcome, work);
      const reply = broken
        ? thrown(broken.error)
        : outcome instanceof Asking
          ? await this.#ask(outcome)
          : outcome instanceof Leaving
            ? undefined
            : outcome;
      if (reply === undefined) return holder.lost === null ? await this.#release() : this.#gone(work);
      const taken = await this.#reply(reply);
      if (!taken) return this.#gone(work);
      const durationMs = performance.now() - startedAt;
      this.#desk.tell({ type: "replied", work, reply: taken.reply, state: taken.state, durationMs });
      return { replied: true, next: taken.next };
    } finally {
      holder.close();
    }
  }

  /** Cuts what is still open. */
  close(): void {
    this.#holder.close(true);
  }

  #work(): Work {
    const { delegation, request, attempt, lease_id, traceparent } = this.#lease;
    const { delegator } = this.#desk;
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
      saveCheckpoint: (checkpoint) => awaited(this.#holder.saveCheckpoint(checkpoint)),
      progress: (said) => this.#holder.progress(typeof said === "string" ? { message: said } : said),
      artifact: (artifact, options) => this.#artifacts.send(artifact, options),
      ask: (asked, more = {}) => {
        const question = typeof asked === "string" ? { text: asked, ...more } : { ...asked, ...more };
        return awaited(this.#asker.ask([question], question).then((all) => inOrder([question], all)[0]));
      },
      askAll: (asked, options = {}) =>
        awaited(this.#asker.ask(asked, options).then((all) => inOrder(asked, all))),
      question: (asked, options = {}) => new Asking(toInterrupt(isList(asked) ? asked : [asked], options)),
      release: (options = {}) => new Leaving("release", options),
      cancel: (text) => new Leaving("cancel", { reason: text }),
      messages: { [Symbol.asyncIterator]: () => followUps.read() },
      onMessage: (listener) => followUps.listen(listener),
      delegate: (input, options) => children.delegate(input, options),
      delegator,
    };
  }

  /** What the handler wants said; nothing when the agent left before it stopped. */
  #handle(work: Work): Promise<Reply | Asking | Leaving | undefined> {
    const { leaving, handler } = this.#desk;
    return new Promise((resolve) => {
      const stay = onAbort(leaving, () => resolve(undefined));
      void outcomeOf(handler, work).then((reply) => {
        stay();
        resolve(reply);
      });
    });
  }

  /** Nothing when the lease is over, as it should be; a reply when there is nothing to wait for. */
  async #ask(asking: Asking): Promise<Reply | undefined> {
    const { leaving } = this.#desk;
    try {
      const raised = await this.#asker.raise(Asking.interruptOf(asking), leaving);
      if (raised === undefined) return undefined;
      const ids = Object.keys(raised.answers ?? {}).join(", ");
      return thrown(new Error(`the handler asks again what was answered (${ids}); see work.answers`));
    } catch (error) {
      if (leaving.aborted) return undefined;
      if (isInvalid(error)) return refused(error, "question");
      throw error;
    }
  }

  /** Until it is taken; nothing when the lease was lost on the way. */
  async #reply(wanted: Reply) {
    const { http, outage, next, leaving } = this.#desk;
    const path = route`/v1/leases/${this.#lease.lease_id}/reply`;
    let reply = wanted;
    for (let failures = 0; !leaving.aborted; failures += 1) {
      try {
        const body = { ...reply, next: next() };
        const answer = await http.request(replySchema, { method: "POST", path, body });
        outage.over();
        const lease = answer.leases?.[0];
        const held = lease && { lease, receivedAt: performance.now() };
        return { reply, state: answer.delegation.state, next: held };
      } catch (error) {
        if (isGone(error)) return undefined;
        if (reply === wanted && isInvalid(error)) reply = refused(error);
        else await outage.backOff(error, failures, leaving);
      }
      const { lost } = this.#holder;
      if (lost !== null && !PERHAPS_OURS.includes(lost)) return undefined;
    }
    return undefined;
  }

  /** Until it is taken, or the lease is lost on the way. */
  async #leave(leaving: Leaving, work: Work) {
    const { http, outage, tell } = this.#desk;
    const { lease_id, delegation } = this.#lease;
    const { delaySeconds: delay_seconds = 0, reason } = leaving;
    const call =
      leaving.kind === "release"
        ? { path: route`/v1/leases/${lease_id}/release`, body: { delay_seconds, reason } }
        : {
            path: route`/v1/agents/${delegation.target}/replies`,
            body: canceled(lease_id, delegation.id, reason),
          };
    for (let failures = 0; this.#holder.lost === null && !this.#desk.leaving.aborted; failures += 1) {
      try {
        await http.request(z.unknown(), { method: "POST", ...call });
        outage.over();
        if (leaving.kind === "cancel") tell({ type: "canceled", work });
        else tell({ type: "released", delegationId: delegation.id, reason });
        return { replied: leaving.kind === "cancel" };
      } catch (error) {
        if (isGone(error)) break;
        if (isInvalid(error)) return await this.#release();
        await outage.backOff(error, failures, this.#desk.leaving);
      }
    }
    return this.#gone(work);
  }

  #gone(work?: Work) {
    const { lost: reason, interruptId } = this.#holder;
    if (work && reason === "interrupted") this.#desk.tell({ type: "parked", work, interruptId });
    else
      this.#desk.tell({ type: "lost", delegationId: this.#lease.delegation.id, reason: reason ?? "unknown" });
    return { replied: false };
  }

  async #release() {
    await giveBack(this.#desk, this.#lease);
    return { replied: false };
  }
}

/** One try: if it fails, the lease runs out by itself. */
export async function giveBack(desk: Desk, lease: Lease): Promise<void> {
  const path = route`/v1/leases/${lease.lease_id}/release`;
  const body = { reason: "the worker is stopping" };
  const delegationId = lease.delegation.id;
  try {
    await desk.http.request(z.unknown(), { method: "POST", path, body, timeoutMs: RELEASE_MS });
    desk.tell({ type: "released", delegationId });
  } catch {
    desk.tell({ type: "abandoned", delegationId });
  }
}

async function outcomeOf(handler: Handler, work: Work): Promise<Reply | Asking | Leaving> {
  try {
    const outcome = await handler(work);
    if (typeof outcome === "string") return { state: "completed", text: outcome };
    return outcome ?? { state: "completed" };
  } catch (error) {
    return thrown(error);
  }
}

function thrown(error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  const said = { code: "agent_error", message: truncate(message, 4096) };
  return { state: "failed", error: { ...said, ...providerError(error) } };
}

/** As an A2A Task says it: the broker has no other word for an agent that cancels. */
function canceled(leaseId: string, id: string, text: string | undefined): object {
  const message = { messageId: `${id}.canceled`, role: "ROLE_AGENT", parts: [{ text }] };
  const status = { state: "TASK_STATE_CANCELED", ...(text !== undefined && { message }) };
  return { jsonrpc: "2.0", id: leaseId, result: { task: { id, status } } };
}

/** Who does not wait for it is spared an unhandled rejection: the run ends all the same. */
function awaited<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const isList = <T>(value: T | readonly T[]): value is readonly T[] => Array.isArray(value);

/** One answer for each that was asked, as the type says. */
function inOrder<const Q extends readonly unknown[]>(asked: Q, answers: readonly Answered[]): AnsweredAll<Q> {
  const isWhole = (given: readonly Answered[]): given is AnsweredAll<Q> => given.length === asked.length;
  if (!isWhole(answers)) throw new Error(`${asked.length} were asked, ${answers.length} were answered`);
  return answers;
}

function isGone(error: unknown): boolean {
  return error instanceof ErrandApiError && ["lease_lost", "lease_unknown"].includes(error.code);
}

/** Said to the delegator, who would otherwise wait for a lease that nobody can end well. */
function refused({ code, message }: ErrandApiError, what = "reply"): Reply {
  return { state: "failed", error: { code, message: `the broker refused the agent's ${what}: ${message}` } };
}
