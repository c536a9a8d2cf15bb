/**
 * Handing out work: a poll waits for a ticket, the script turns it into a lease. Limit: a ticket that the
 * record does not know is consumed and the poll waits on.
 */
import { leaseJson } from "../lifecycle/envelope.ts";
import type { Command } from "../lifecycle/writer.ts";
import type { Popped } from "../queue/tickets.ts";
import { leaseIdOf, randomId } from "../redis/shards.ts";
import { ErrandError } from "../schema/errors.ts";
import type { LeaseRequest } from "../schema/lease.ts";
import { type Principal, requireAgent } from "./access.ts";
import type { Broker } from "./context.ts";
import { follow, report, wake } from "./dispatch.ts";

export interface GrantedLease {
  readonly delegation_id: string;
  readonly fence: number;
  /** The lease of contract §5, as JSON text. */
  readonly json: string;
}

const OVER = "the poll is over";

/** What a popped ticket was worth. `held`: the agent is paused or full, so asking again is no use yet. */
type Grant = GrantedLease | "nothing" | "held";

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
  const patience = new AbortController();
  // Without a reason of its own every poll would cost the making of an exception.
  const stop = () => patience.abort(OVER);
  const timer = setTimeout(stop, request.wait_seconds * 1000);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const granted: GrantedLease[] = [];
  try {
    for (let held = false; granted.length === 0; ) {
      const popped =
        request.wait_seconds === 0
          ? await pop(broker, agent)
          : await claim(broker, agent, patience.signal, held);
      if (!popped) return granted;
      if (signal.aborted) {
        await broker.tickets.putBack(popped);
        wake(broker, agent);
        return granted;
      }
      const grant = await take(broker, agent, request, popped);
      if (typeof grant === "object") granted.push(grant);
      held = grant === "held";
      if (held && request.wait_seconds === 0) return granted;
    }
    while (granted.length < request.max && !signal.aborted) {
      const popped = await pop(broker, agent);
      if (!popped) break;
      const grant = await take(broker, agent, request, popped);
      if (typeof grant === "object") granted.push(grant);
      if (grant === "held") break;
    }
    if (!signal.aborted) return granted;
    // Nobody is there to take them any more.
    await handBack(broker, granted);
    return [];
  } catch (error) {
    if (granted.length > 0) return granted;
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    broker.presences.seen(agent);
  }
}

async function pop(broker: Broker, agent: string): Promise<Popped | null> {
  try {
    return (await broker.tickets.pop(agent)).popped;
  } catch (error) {
    broker.unheard.pop(agent);
    throw error;
  }
}

/** A held queue is looked at again when something moves, not at once. */
async function claim(
  broker: Broker,
  agent: string,
  signal: AbortSignal,
  held: boolean,
): Promise<Popped | null> {
  if (!held) return broker.claimers.claim(agent, signal);
  const parked = broker.claimers.claim(agent, signal, false);
  // Asked once parked: what made room before then woke nobody.
  broker.agents.isHeld(agent).then(
    (stillHeld) => stillHeld || wake(broker, agent),
    (error: unknown) => report(broker, error, "not known whether the agent may be handed work"),
  );
  return parked;
}

async function take(broker: Broker, agent: string, request: LeaseRequest, popped: Popped): Promise<Grant> {
  const { delegation_id, ticket } = popped;
  const grant: Command = {
    move: "lease",
    id: delegation_id,
    params: {
      ticket,
      nonce: randomId(16),
      worker_id: request.worker_id ?? agent,
      lease_ms: ms(request.lease_seconds),
      confirm_ms: ms(request.confirm_within_seconds),
    },
    read: true,
  };
  const { outcome, record } = await broker.writer.move(grant).catch((error: unknown) => {
    broker.unheard.grants.push(grant);
    broker.unheard.pop(agent);
    throw error;
  });
  try {
    if (outcome.outcome === "not_ready") {
      await broker.tickets.putBack(popped, Math.max(1, outcome.ready_at - outcome.now));
    } else if (outcome.outcome === "held") {
      await broker.tickets.putBack(popped);
    } else {
      await broker.tickets.consume(popped);
    }
  } catch (error) {
    broker.unheard.pop(agent);
    report(broker, error, "ticket not consumed; it will be looked for");
  }
  if (outcome.outcome === "held") return "held";
  if (outcome.outcome !== "ok" || !record) return "nothing";
  const lease_id = leaseIdOf(delegation_id, outcome.fence);
  return { delegation_id, fence: outcome.fence, json: leaseJson(record, lease_id) };
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
