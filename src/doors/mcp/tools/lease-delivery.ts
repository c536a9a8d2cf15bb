/**
 * Proof that a client received the work that its poll found. In a session of 2025-11-25 the client answers a ping on
 * the poll's own stream. Without a session, and for a client that never answers pings, the agent's next call with the
 * lease is the proof. A lease without proof is released without spending an attempt. Limit: if a client dies after its
 * proof, its lease expires as usual.
 */
import { heartbeat } from "../../../engine/leases/heartbeat.ts";
import type { LeaseRef } from "../../../engine/leases/in-doubt.ts";
import { type GrantedLease, returnLeases } from "../../../engine/leases/lease.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { type Lease, leaseSchema } from "../../../schema/lease.ts";
import type { McpContext } from "../context.ts";

/** Long enough for a model to read its task and make a call. */
export const CONFIRM_SECONDS = 120;
/** Some agents make no call until they finish, so work that was returned this often is delivered without proof. */
const MAX_UNPROVEN_RETURNS = 3;

export interface DeliveredLease {
  readonly ref: LeaseRef;
  readonly lease: Lease;
  /** If false, the agent's next call with the lease must confirm it. */
  readonly confirmed: boolean;
}

/** Returns the leases to deliver; none if the client stopped answering, and then they are released. */
export async function deliverLeases(
  context: McpContext,
  granted: readonly GrantedLease[],
  signal: AbortSignal,
): Promise<DeliveredLease[]> {
  if (granted.length === 0) return [];
  const { broker, request } = context;
  const answersPings = await context.answersPings(signal);
  if (signal.aborted || (answersPings && !(await context.isAlive(signal)))) {
    broker.log.info(
      { request_id: request.requestId, leases: granted.length },
      "the client did not answer a ping; its leases are released",
    );
    await returnLeases(broker, granted);
    return [];
  }
  const deliveries = await Promise.all(
    granted.map(async ({ delegation_id, fence, json }): Promise<DeliveredLease | undefined> => {
      const lease = leaseSchema.parse(JSON.parse(json));
      const isProven = answersPings || fence - lease.attempt >= MAX_UNPROVEN_RETURNS;
      const confirmed = isProven ? await confirm(context, lease, signal) : false;
      return confirmed === undefined ? undefined : { ref: { delegation_id, fence }, lease, confirmed };
    }),
  );
  const delivered = deliveries.filter((delivery) => delivery !== undefined);
  if (!signal.aborted) return delivered;
  // The client has left, though its connection may still be open.
  await returnLeases(
    broker,
    delivered.map(({ ref }) => ref),
  );
  return [];
}

/** Confirms the lease for the agent; undefined when the lease is lost. */
async function confirm(
  { broker, principal }: McpContext,
  { lease_id }: Lease,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  try {
    await heartbeat(broker, principal, lease_id, { wait_seconds: 0 }, signal);
    return true;
  } catch (error) {
    if (error instanceof ErrandError && error.code === "lease_lost") return undefined;
    // Redis did not answer: the agent's next call confirms the lease.
    return false;
  }
}
