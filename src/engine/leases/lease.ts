/**
 * Handing out work: a poll waits, the script turns the first ticket into a lease. Limit: a ticket that the
 * record does not know is gone with the look, and the poll waits on.
 */
import { leaseJson } from "../../lifecycle/lease-payload.ts";
import type { Result, Taker } from "../../lifecycle/writer.ts";
import type { Claim, Leaving, Look } from "../../queue/parked-polls.ts";
import { leaseIdOf, randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import type { LeaseRequest } from "../../schema/lease.ts";
import { type Principal, requireAgent } from "../access/access.ts";
import { afterMove, notifyReceivers, wake, warn } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { PAGE_BYTES } from "../delegations/read-many.ts";
import { audit } from "../upkeep/audit.ts";
import type { Terms } from "./handoff.ts";
import type { LeaseRef } from "./in-doubt.ts";

export interface GrantedLease extends LeaseRef {
  /** The lease, as JSON text. */
  readonly json: string;
}

/** What a look was worth. `held`: the agent is paused or full, so asking again is no use yet. */
type Grant = GrantedLease | "held";

/**
 * Waits up to `wait_seconds` for work; empty when there was none, or when `signal` aborted (the client
 * left, the token was revoked, the gateway shuts down).
 */
export async function lease(
  broker: Broker,
  principal: Principal,
  agent: string,
  request: LeaseRequest,
  signal: Leaving,
): Promise<GrantedLease[]> {
  requireAgent(principal, agent, "work for it");
  await broker.agents.get(agent);
  broker.presence.seen(agent, request.worker_id ?? agent);
  const asking = new Asking(broker, agent, request, signal);
  const granted: GrantedLease[] = [];
  try {
    let grant = await asking.claim();
    while (grant === "held" && request.wait_seconds > 0) grant = await asking.claimOnceMoved();
    for (let size = 0; grant !== null && grant !== "held"; ) {
      granted.push(grant);
      size += grant.json.length;
      if (granted.length >= request.max || size >= PAGE_BYTES || signal.aborted) break;
      grant = (await asking.look()).found;
    }
  } catch (error) {
    if (granted.length === 0) throw error;
  } finally {
    broker.presence.seen(agent, request.worker_id ?? agent);
  }
  if (!signal.aborted || granted.length === 0) return granted;
  // Nobody is there to take them any more.
  await handBack(broker, granted);
  return [];
}

/** What a poll asks, as the queue keeps it while it is parked. (One object: there may be thousands.) */
class Asking implements Terms, Claim<Grant, Terms, Result> {
  readonly agent: string;
  readonly request: LeaseRequest;
  readonly signal: Leaving;
  readonly #broker: Broker;
  /** By `performance.now()`. */
  readonly #until: number;
  park = false;

  constructor(broker: Broker, agent: string, request: LeaseRequest, signal: Leaving) {
    this.#broker = broker;
    this.agent = agent;
    this.request = request;
    this.signal = signal;
    this.#until = performance.now() + request.wait_seconds * 1000;
  }

  get terms(): Terms {
    return this;
  }

  get wait_ms(): number {
    return Math.max(0, this.#until - performance.now());
  }

  look(brought?: Result): Promise<Look<Grant>> {
    return take(this.#broker, this, brought);
  }

  claim(): Promise<Grant | null> {
    if (this.request.wait_seconds === 0) return this.look().then(({ found }) => found);
    return this.#broker.polls.claim(this.agent, this);
  }

  /** A held queue is looked at again when something moves, not at once. */
  claimOnceMoved(): Promise<Grant | null> {
    const broker = this.#broker;
    this.park = true;
    const parked = this.claim();
    // Asked once parked: what made room before then woke nobody.
    broker.agents.isHeld(this.agent).then(
      (stillHeld) => stillHeld || wake(broker, this.agent),
      (error: unknown) => warn(broker, error, "not known whether the agent may be handed work"),
    );
    return parked;
  }
}

/** For the script, with a nonce that tells this lease from others should its answer be lost. */
export const takerOf = ({ agent, request }: Terms): Taker => ({
  agent,
  nonce: randomId(16),
  worker_id: request.worker_id ?? agent,
  lease_ms: ms(request.lease_seconds),
  confirm_ms: ms(request.confirm_within_seconds),
});

/** Looks until it has a lease or there is nothing to be had: a ticket may be worth nothing. */
async function take(broker: Broker, terms: Terms, brought?: Result): Promise<Look<Grant>> {
  for (let result = brought; ; result = undefined) {
    const { outcome, record } = result ?? (await takeOne(broker, takerOf(terms)));
    if (outcome.kind === "empty") {
      const { next_due_at, now } = outcome;
      if (next_due_at === undefined) return { found: null };
      // Redis' clock says when it is due, ours when to look; they may differ.
      const left = next_due_at - (now - broker.clock.offset_ms);
      return { found: null, next_due_at: Date.now() + left };
    }
    if (outcome.kind === "blocked") return { found: "held", held: true };
    if (outcome.kind !== "ok" || !record) continue;
    const { id, fence } = record;
    notifyReceivers(broker, id, outcome);
    return {
      found: { delegation_id: id, fence, json: leaseJson(record, leaseIdOf(id, fence), outcome.secrets) },
    };
  }
}

function takeOne(broker: Broker, taker: Taker): Promise<Result> {
  return broker.writer.take(taker).catch((error: unknown) => {
    broker.unheard.grant(taker.agent, taker.nonce);
    throw error;
  });
}

const ms = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * 1000);

/** The reader was gone before the answer was out: the leases go back at once, no attempt spent. */
export async function handBack(broker: Broker, leases: readonly LeaseRef[]): Promise<void> {
  broker.metrics.handedBack.inc(leases.length);
  for (const { delegation_id, fence } of leases) {
    try {
      await giveBack(broker, { delegation_id, fence });
    } catch (error) {
      broker.unheard.handBack({ delegation_id, fence });
      warn(broker, error, "lease not handed back yet");
    }
  }
}

/** Resolves once the lease is known to have ended, for any reason. */
export async function giveBack(broker: Broker, { delegation_id, fence }: LeaseRef): Promise<void> {
  const { outcome } = await broker.writer.move({
    move: "unconfirm",
    id: delegation_id,
    params: { fence },
    event: { reason: '"connection_lost"' },
  });
  if (outcome.kind === "ok") await afterMove(broker, delegation_id, outcome);
}

export async function setPaused(
  broker: Broker,
  principal: Principal,
  agent: string,
  paused: boolean,
): Promise<void> {
  if (principal.kind !== "operator") {
    throw new ErrandError("forbidden", "Only the operator may pause or resume an agent.");
  }
  await broker.agents.get(agent);
  await broker.agents.setPaused(agent, paused);
  await audit(broker, principal, paused ? "agent.pause" : "agent.resume", agent);
  if (!paused) wake(broker, agent);
}
