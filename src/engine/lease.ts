/**
 * Handing out work: a poll waits, the script turns the first ticket into a lease. Limit: a ticket that the
 * record does not know is gone with the look, and the poll waits on.
 */
import { leaseJson } from "../lifecycle/envelope.ts";
import type { Look } from "../queue/claimers.ts";
import { leaseIdOf, randomId } from "../redis/shards.ts";
import { ErrandError } from "../schema/errors.ts";
import type { LeaseRequest } from "../schema/lease.ts";
import { type Principal, requireAgent } from "./access.ts";
import type { Broker } from "./context.ts";
import { follow, report, tell, wake } from "./dispatch.ts";

export interface GrantedLease {
  readonly delegation_id: string;
  readonly fence: number;
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
  signal: AbortSignal,
): Promise<GrantedLease[]> {
  requireAgent(principal, agent, "work for it");
  await broker.agents.get(agent);
  broker.presences.seen(agent);
  const look = () => take(broker, agent, request);
  const until = performance.now() + request.wait_seconds * 1000;
  const granted: GrantedLease[] = [];
  try {
    let grant: Grant | null = null;
    do {
      grant =
        request.wait_seconds === 0
          ? (await look()).found
          : await claim(broker, agent, { signal, until, look, park: grant === "held" });
    } while (grant === "held" && request.wait_seconds > 0);
    while (grant !== null && grant !== "held") {
      granted.push(grant);
      if (granted.length >= request.max || signal.aborted) break;
      grant = (await look()).found;
    }
    if (!signal.aborted || granted.length === 0) return granted;
    // Nobody is there to take them any more.
    await handBack(broker, granted);
    return [];
  } catch (error) {
    if (granted.length > 0) return granted;
    throw error;
  } finally {
    broker.presences.seen(agent);
  }
}

interface Claim {
  readonly signal: AbortSignal;
  /** By `performance.now()`. */
  readonly until: number;
  readonly look: () => Promise<Look<Grant>>;
  readonly park: boolean;
}

/** A held queue is looked at again when something moves, not at once. */
function claim(broker: Broker, agent: string, { signal, until, look, park }: Claim): Promise<Grant | null> {
  const wait_ms = Math.max(0, until - performance.now());
  const parked = broker.claimers.claim(agent, { signal, wait_ms, look, park });
  if (park) {
    // Asked once parked: what made room before then woke nobody.
    broker.agents.isHeld(agent).then(
      (stillHeld) => stillHeld || wake(broker, agent),
      (error: unknown) => report(broker, error, "not known whether the agent may be handed work"),
    );
  }
  return parked;
}

/** Looks until it has a lease or there is nothing to be had: a ticket may be worth nothing. */
async function take(broker: Broker, agent: string, request: LeaseRequest): Promise<Look<Grant>> {
  for (;;) {
    const nonce = randomId(16);
    const params = {
      nonce,
      worker_id: request.worker_id ?? agent,
      lease_ms: ms(request.lease_seconds),
      confirm_ms: ms(request.confirm_within_seconds),
    };
    const { outcome, record } = await broker.writer.take(agent, params).catch((error: unknown) => {
      broker.unheard.grant(agent, nonce);
      throw error;
    });
    if (outcome.outcome === "empty") {
      const { next_due_at, now } = outcome;
      if (next_due_at === undefined) return { found: null };
      // Redis' clock says when it is due, ours when to look; they may differ.
      const left = next_due_at - (now - broker.clock.offset_ms);
      return { found: null, next_due_at: Date.now() + left };
    }
    if (outcome.outcome === "held") return { found: "held", held: true };
    if (outcome.outcome !== "ok" || !record) continue;
    const { id, fence } = record;
    tell(broker, id, outcome);
    return { found: { delegation_id: id, fence, json: leaseJson(record, leaseIdOf(id, fence)) } };
  }
}

const ms = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * 1000);

/** The reader was gone before the answer was out: the leases go back at once, no attempt spent. */
export async function handBack(broker: Broker, leases: readonly GrantedLease[]): Promise<void> {
  broker.metrics.handedBack.inc(leases.length);
  for (const { delegation_id, fence } of leases) {
    try {
      const { outcome } = await broker.writer.move({
        move: "unconfirm",
        id: delegation_id,
        params: { fence },
        event: { reason: '"connection_lost"' },
      });
      if (outcome.outcome === "ok") await follow(broker, delegation_id, outcome);
    } catch (error) {
      report(broker, error, "lease not handed back; it will lapse");
    }
  }
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
  if (!paused) wake(broker, agent);
}
