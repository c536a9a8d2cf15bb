/** Grants leases to a worker: its poll waits, and the script turns the first ticket of the queue into a lease. */
import { leaseJson } from "../../lifecycle/lease-payload.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { leaseIdOf } from "../../redis/shards.ts";
import type { LeaseRequest } from "../../schema/lease.ts";
import type { StopSignal } from "../../util/stop-signal.ts";
import { type Principal, requireAgent } from "../access/access.ts";
import { afterMove, type Moves, notifyReceivers } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { PAGE_BYTES } from "../delegations/read-many.ts";
import { allowsApprovalInAdvance } from "../questions/allowed-approval.ts";
import { type AwaitedReads, awaitedIds, awaitedJson } from "./awaited.ts";
import type { Granted } from "./handoff.ts";
import type { LeaseRef } from "./in-doubt.ts";
import { WaitingPoll } from "./waiting-poll.ts";

type LeaseNeeds = AwaitedReads & Pick<Broker, "agents" | "deliverPending" | "handoff" | "log" | "presence">;

export interface GrantedLease extends LeaseRef {
  /** The lease, as JSON text. */
  readonly json: string;
}

/**
 * Waits up to `wait_seconds` for work; empty when there was none, or when `signal` aborted (the client left, the token
 * was revoked, the gateway stops). Not async, and with one promise for all steps, because a parked poll would retain a
 * frame and a promise for each step.
 */
export function lease(
  broker: LeaseNeeds,
  principal: Principal,
  agent: string,
  request: LeaseRequest,
  signal: StopSignal,
): Promise<GrantedLease[]> {
  return new Promise((resolve, reject) => {
    requireAgent(principal, agent, "work for it");
    const begin = () => {
      broker.presence.seen(agent, request.worker_id ?? agent);
      const poll = new WaitingPoll(broker.handoff, agent, request, signal);
      poll.wait((first) => resolve(collect(broker, principal, poll, first)));
    };
    broker.agents.get(agent).then(begin).catch(reject);
  });
}

/** Takes further leases after the first, up to `max`. */
async function collect(
  broker: LeaseNeeds,
  principal: Principal,
  poll: WaitingPoll,
  first: Granted | null | Promise<Granted | null>,
): Promise<GrantedLease[]> {
  const { agent, request, signal } = poll;
  const granted: GrantedLease[] = [];
  try {
    let size = 0;
    // All are the same agent's, so its settings are read once.
    let isAllowed: Promise<boolean> | undefined;
    for (let next = await first; next !== null; next = await poll.more()) {
      const { record } = next;
      if (record.get("auto_approve") !== null) isAllowed ??= showsAutoApprove(broker, agent);
      const ids = awaitedIds(record);
      const awaited = ids === null ? undefined : await readAwaited(broker, principal, record, ids);
      const shown = (await isAllowed) === false ? record.withoutAutoApprove() : record;
      const one = toLease(broker, next, shown, awaited);
      granted.push(one);
      size += one.json.length;
      if (granted.length >= request.max || size >= PAGE_BYTES || signal.aborted) break;
    }
  } catch (error) {
    if (granted.length === 0) throw error;
  } finally {
    broker.presence.seen(agent, request.worker_id ?? agent);
  }
  if (!signal.aborted || granted.length === 0) return granted;
  // The client is gone.
  await returnLeases(broker, granted);
  return [];
}

/** Whether leases show `auto_approve`: a worker that sees it need not ask. If Redis does not answer, the worker asks. */
const showsAutoApprove = (broker: Pick<Broker, "agents">, agent: string): Promise<boolean> =>
  allowsApprovalInAdvance(broker, agent).catch(() => false);

function toLease(
  broker: Pick<Broker, "deliverPending">,
  { outcome }: Granted,
  record: StoredDelegation,
  awaited: string | undefined,
): GrantedLease {
  const { id } = record;
  const fence = record.get("fence");
  notifyReceivers(broker, id, outcome);
  return {
    delegation_id: id,
    fence,
    json: leaseJson(record, leaseIdOf(id, fence), outcome.secrets, awaited),
  };
}

/** What the delegation waited for. If Redis does not answer, the lease comes without it. */
async function readAwaited(
  broker: LeaseNeeds,
  principal: Principal,
  record: StoredDelegation,
  ids: readonly string[],
): Promise<string | undefined> {
  const { id } = record;
  const outcome = record.get("awaits_over") === 1 ? "time_limit" : "ended";
  const target = record.get("target");
  return awaitedJson(broker, principal, id, ids, outcome, target).catch((error: unknown) => {
    broker.log.warn({ delegation_id: id, err: String(error) }, "children of a lease not read");
    return undefined;
  });
}

/** Returns leases to the queue, because their client left before the response was sent; no attempt is spent. */
export async function returnLeases(
  broker: Pick<Broker, "handoff">,
  leases: readonly LeaseRef[],
): Promise<void> {
  for (const lease of leases) await broker.handoff.inDoubt.returnLease(lease);
}

/** Resolves once the lease is known to have ended, for any reason. */
export async function returnLease(broker: Moves, { delegation_id, fence }: LeaseRef): Promise<void> {
  const { outcome } = await broker.writer.move({
    move: "unconfirm",
    id: delegation_id,
    params: { fence },
    event: { reason: '"connection_lost"' },
  });
  if (outcome.kind === "ok") await afterMove(broker, delegation_id, outcome);
}
