/**
 * One lease from receipt to its end: confirm, run the handler, reply until the reply is taken.
 * Limit: whatever cannot be told to the broker is left to the lease's expiry.
 */
import * as z from "zod";
import { textOf } from "../schema/a2a.ts";
import { type Lease, replySchema } from "../schema/lease.ts";
import { Artifacts } from "./artifacts.ts";
import { ErrandApiError } from "./errors.ts";
import { type Http, route } from "./http.ts";
import { LeaseKeeper, type LostReason } from "./lease-keeper.ts";
import type { Outage } from "./outage.ts";
import { onAbort } from "./timing.ts";
import { type AgentEvent, AgentStoppingError, type Handler, type Reply, type Work } from "./work.ts";

/** What an agent lends to each of its attempts. */
export interface Desk {
  readonly http: Http;
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
  readonly #keeper: LeaseKeeper;
  readonly #artifacts: Artifacts;

  constructor(desk: Desk, held: Held) {
    this.#desk = desk;
    this.#lease = held.lease;
    this.#keeper = new LeaseKeeper(desk.http, held.lease, held.receivedAt);
    this.#artifacts = new Artifacts(desk.http, desk.outage, this.#keeper);
  }

  /** Tells the handler to stop; its lease then goes back. */
  interrupt(): void {
    this.#keeper.interrupt(new AgentStoppingError("the agent is stopping"));
  }

  /** Whether a reply was taken, and the lease that came with its answer, if one did. */
  async run(): Promise<{ readonly replied: boolean; readonly next?: Held | undefined }> {
    const keeper = this.#keeper;
    try {
      const startedAt = performance.now();
      if (!(await keeper.confirm(CONFIRM_SECONDS * 1000))) return this.#gone();
      if (keeper.signal.aborted) return await this.#release();
      void keeper.keep();
      const work = this.#work();
      this.#desk.tell({ type: "leased", work });
      const reply = await this.#handle(work);
      await this.#artifacts.settled();
      await keeper.settle();
      if (keeper.lost !== null) return this.#gone();
      if (reply === undefined || keeper.signal.aborted) return await this.#release();
      const taken = await this.#reply(reply);
      if (!taken) return this.#gone();
      const durationMs = performance.now() - startedAt;
      this.#desk.tell({ type: "replied", work, reply: taken.reply, state: taken.state, durationMs });
      return { replied: true, next: taken.next };
    } finally {
      keeper.close();
    }
  }

  /** Cuts what is still open. */
  close(): void {
    this.#keeper.close(true);
  }

  #work(): Work {
    const { delegation, request, attempt, lease_id, traceparent } = this.#lease;
    return {
      delegation,
      text: textOf(delegation.message),
      message: request.params.message,
      attempt,
      leaseId: lease_id,
      request,
      traceparent,
      signal: this.#keeper.signal,
      progress: (said) => this.#keeper.progress(typeof said === "string" ? { message: said } : said),
      artifact: (artifact, options) => this.#artifacts.send(artifact, options),
    };
  }

  /** The handler's outcome as a reply; nothing when the agent left before it stopped. */
  #handle(work: Work): Promise<Reply | undefined> {
    const { leaving, handler } = this.#desk;
    return new Promise((resolve) => {
      const stay = onAbort(leaving, () => resolve(undefined));
      void outcomeOf(handler, work).then((reply) => {
        stay();
        resolve(reply);
      });
    });
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
        if (reply === wanted && isRefused(error)) reply = refused(error);
        else await outage.backOff(error, failures, leaving);
      }
      const { lost } = this.#keeper;
      if (lost !== null && !PERHAPS_OURS.includes(lost)) return undefined;
    }
    return undefined;
  }

  #gone() {
    const reason = this.#keeper.lost ?? "unknown";
    this.#desk.tell({ type: "lost", delegationId: this.#lease.delegation.id, reason });
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

async function outcomeOf(handler: Handler, work: Work): Promise<Reply> {
  try {
    const outcome = await handler(work);
    if (typeof outcome === "string") return { state: "completed", text: outcome };
    return outcome ?? { state: "completed" };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { state: "failed", error: { code: "agent_error", message: message.slice(0, 4096) } };
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ErrandApiError && ["lease_lost", "lease_unknown"].includes(error.code);
}

/** The reply itself is at fault: too large, or not what the schema says. */
function isRefused(error: unknown): error is ErrandApiError {
  return error instanceof ErrandApiError && [400, 413, 422].includes(error.status);
}

/** Said to the delegator, who would otherwise wait for a lease that nobody can end well. */
function refused({ code, message }: ErrandApiError): Reply {
  return { state: "failed", error: { code, message: `the broker refused the agent's reply: ${message}` } };
}
