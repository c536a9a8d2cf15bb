/**
 * Proof that a client has the work that a poll found for it. In a session of 2025-11-25 the client answers a ping on
 * the poll's own stream. Without a session, and for a client that never answers pings, the agent's next call with the
 * lease is the proof. A lease without proof goes back, and no attempt is spent. Limit: if a client dies after its proof,
 * its lease lapses as usual.
 */
import { ProtocolError } from "@modelcontextprotocol/server";
import { heartbeat } from "../../../engine/leases/heartbeat.ts";
import type { LeaseRef } from "../../../engine/leases/in-doubt.ts";
import { type GrantedLease, handBack } from "../../../engine/leases/lease.ts";
import { ErrandError } from "../../../schema/errors.ts";
import { type Lease, leaseSchema } from "../../../schema/lease.ts";
import type { Context } from "../context.ts";

export const PING_MS = 10_000;
/** Long enough for a model to read its task and make a call. */
export const CONFIRM_SECONDS = 120;
/** Some agents make no call before they are done. So work that came back this often is handed out without proof. */
const RETURNS_WITHOUT_PROOF = 3;

type Ping = (options: { readonly timeout: number; readonly signal: AbortSignal }) => Promise<unknown>;

/** Asks the client of one session for proof, and remembers whether it answers pings at all. */
export class ClientPings {
  readonly #timeout: number;
  #answers: Promise<boolean> | undefined;

  constructor(timeout = PING_MS) {
    this.#timeout = timeout;
  }

  /** Whether this client answers pings at all; it is asked once. */
  answers(ping: Ping, signal: AbortSignal): Promise<boolean> {
    this.#answers ??= this.isAlive(ping, signal).then((alive) => {
      // A call that ended early proves nothing; the next one asks again.
      if (!alive && signal.aborted) this.#answers = undefined;
      return alive;
    });
    return this.#answers;
  }

  async isAlive(ping: Ping, signal: AbortSignal): Promise<boolean> {
    try {
      await ping({ timeout: this.#timeout, signal });
      return true;
    } catch (error) {
      // An error response is an answer too.
      return error instanceof ProtocolError;
    }
  }
}

export interface Delivery {
  readonly ref: LeaseRef;
  readonly lease: Lease;
  /** False: the agent's next call with the lease has to confirm it. */
  readonly confirmed: boolean;
}

/** Returns the leases to answer with. A client that stopped answering gets none: they go back. */
export async function deliver(
  context: Context,
  granted: readonly GrantedLease[],
  signal: AbortSignal,
): Promise<Delivery[]> {
  if (granted.length === 0) return [];
  const { broker, call } = context;
  const answers = await context.answersPings(signal);
  if (signal.aborted || (answers && !(await context.isAlive(signal)))) {
    broker.log.info(
      { request_id: call.requestId, leases: granted.length },
      "no answer to a ping; handed back",
    );
    await handBack(broker, granted);
    return [];
  }
  const found = await Promise.all(
    granted.map(async ({ delegation_id, fence, json }): Promise<Delivery | undefined> => {
      const lease = leaseSchema.parse(JSON.parse(json));
      const isProven = answers || fence - lease.attempt >= RETURNS_WITHOUT_PROOF;
      const confirmed = isProven ? await confirm(context, lease, signal) : false;
      return confirmed === undefined ? undefined : { ref: { delegation_id, fence }, lease, confirmed };
    }),
  );
  const deliveries = found.filter((one) => one !== undefined);
  if (!signal.aborted) return deliveries;
  // Nobody hears the answer any more, though its connection may stay open.
  await handBack(
    broker,
    deliveries.map(({ ref }) => ref),
  );
  return [];
}

/** Confirms the lease for the agent; undefined when the lease is gone. */
async function confirm(
  { broker, principal }: Context,
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
