/**
 * Waits for children without a lease: the delegation is parked, and the end of the children starts the handler again, where
 * the same call returns them. Limit: the next run must name the same children.
 */
import type { LeaseHolder } from "../lease-holder/lease-holder.ts";
import { LeaseLostError } from "../lease-holder/lost.ts";
import {
  type Awaited,
  type AwaitInput,
  type AwaitRequest,
  awaitResultSchema,
  neededEnds,
} from "../schema/await.ts";
import { type Delegation, isTerminal, type State } from "../schema/delegation.ts";
import type { Checkpoint } from "../schema/values.ts";
import type { Artifacts } from "./artifacts.ts";
import { endsOf } from "./child-ends.ts";
import type { Delegator } from "./delegator.ts";
import { isFull } from "./errors.ts";
import { type Http, route } from "./http.ts";

export interface WaitForOptions {
  /** How many of the children must end: `all`, `any`, which is one, or a number of them. Default: `all`. */
  readonly until?: AwaitInput["until"];
  /** How long it waits, 1 second to a year. Default: until the delegation's deadline. */
  readonly timeLimitSeconds?: number | undefined;
  /**
   * How long the handler first waits with its lease, default 0: if enough children end in this time, it goes on. Then the
   * delegation waits without a lease. Limit: 20 children are watched at once.
   */
  readonly holdSeconds?: number | undefined;
  /** Saved with the wait, as by `saveCheckpoint`; null deletes the one before. */
  readonly checkpoint?: Checkpoint | null | undefined;
}

/** What became of the children. */
export interface WaitedFor {
  /** `ended`: enough of them ended. `time_limit`: the time limit passed first. */
  readonly outcome: Awaited["outcome"];
  /** In the order of the call. */
  readonly children: readonly WaitedChild[];
}

export interface WaitedChild {
  readonly id: string;
  /** Null: it had no record when its end was counted. */
  readonly state: State | null;
  /**
   * The child, if it has ended. Undefined also if the children together are too large, or another principal delegated this
   * one: read it with `work.delegator.get(id)`.
   */
  readonly delegation: Delegation | undefined;
}

interface Context {
  readonly http: Http;
  readonly delegator: Pick<Delegator, "watch">;
  readonly giveUp: AbortSignal;
}

export class ChildrenWait {
  readonly #context: Context;
  readonly #holder: LeaseHolder;
  readonly #artifacts: Artifacts;
  /** The result that came with the lease. Used once: a second wait for the same children asks the broker. */
  #known: Awaited | undefined;
  /**
   * How often the same wait ran out of time in this run. A run that starts over comes to each wait again, and the broker
   * answers those at once that ran out of time in earlier runs.
   */
  readonly #timeLimits = new Map<string, number>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: Context, holder: LeaseHolder, artifacts: Artifacts) {
    this.#context = context;
    this.#holder = holder;
    this.#artifacts = artifacts;
    this.#known = holder.lease.awaited;
  }

  /** What became of the children for which the run before waited; undefined: it did not wait. */
  get waited(): WaitedFor | undefined {
    const { awaited } = this.#holder.lease;
    return (
      awaited &&
      toWaited(
        awaited,
        awaited.children.map(({ delegation_id }) => delegation_id),
      )
    );
  }

  waitFor(
    children: readonly (string | { readonly id: string })[],
    options: WaitForOptions = {},
  ): Promise<WaitedFor> {
    const waited = this.#waitFor(children, options);
    this.#last = Promise.allSettled([this.#last, waited]);
    return waited;
  }

  /** The handler has ended. Resolves once the broker has answered the last call. */
  async settled(): Promise<void> {
    await this.#last;
  }

  async #waitFor(
    given: readonly (string | { readonly id: string })[],
    { until = "all", timeLimitSeconds, holdSeconds = 0, checkpoint }: WaitForOptions,
  ): Promise<WaitedFor> {
    const children = given.map((one) => (typeof one === "string" ? one : one.id));
    if (holdSeconds > 0 && this.#known === undefined) {
      const { callSignal: signal } = this.#holder;
      const needed = neededEnds(until, children.length);
      const seconds = Math.min(holdSeconds, timeLimitSeconds ?? holdSeconds);
      await endsOf(this.#context.delegator, children, { needed, seconds, signal });
    }
    // The broker tells waits apart in the same way.
    const wait = `${neededEnds(until, children.length)} ${[...children].sort().join(" ")}`;
    const round = (this.#timeLimits.get(wait) ?? 0) + 1;
    const waited = await this.#askBroker(children, {
      until,
      round,
      time_limit_seconds: timeLimitSeconds,
      checkpoint,
    });
    if (waited.outcome === "time_limit") this.#timeLimits.set(wait, round);
    return toWaited(waited, children);
  }

  async #askBroker(children: readonly string[], terms: Omit<AwaitInput, "children">): Promise<Awaited> {
    const known = this.#known;
    if (known && hasSameChildren(known, children) && isMet(known, terms.until ?? "all")) {
      this.#known = undefined;
      return known;
    }
    const { giveUp, http } = this.#context;
    const holder = this.#holder;
    // The output of this run must be sent first, because the wait ends the lease.
    await this.#artifacts.settled();
    await holder.reportUsage();
    const path = route`/v1/leases/${holder.lease.lease_id}/await`;
    const call = { method: "POST", path, body: { children, ...terms } } as const;
    const { callSignal } = holder;
    const answer = await holder
      .retry(
        () =>
          http.request(awaitResultSchema, { ...call, signal: callSignal }).catch((error: unknown) => {
            // The limit does not go away, so a retry would not help.
            if (isFull(error)) return { full: error };
            throw error;
          }),
        { signal: giveUp },
      )
      .catch((error: unknown) => {
        // If the answer to an earlier try was lost, a later one says that the lease is over.
        throw error instanceof LeaseLostError ? callSignal.reason : error;
      });
    if ("full" in answer) throw answer.full;
    if (answer.awaited) return answer.awaited;
    holder.parkForChildren();
    throw callSignal.reason;
  }
}

const hasSameChildren = ({ children }: Awaited, ids: readonly string[]): boolean =>
  children.length === ids.length && children.every(({ delegation_id }) => ids.includes(delegation_id));

function isMet({ outcome, children }: Awaited, until: AwaitRequest["until"]): boolean {
  const ended = children.filter(({ state }) => state === null || isTerminal(state)).length;
  return outcome === "time_limit" || ended >= neededEnds(until, children.length);
}

function toWaited({ outcome, children }: Awaited, ids: readonly string[]): WaitedFor {
  const byId = new Map(children.map((child) => [child.delegation_id, child]));
  return {
    outcome,
    children: ids.map((id) => ({
      id,
      state: byId.get(id)?.state ?? null,
      delegation: byId.get(id)?.delegation,
    })),
  };
}
