/**
 * Heartbeats, with progress or held, and releases: what a holder does with its lease before the reply.
 * Limit: the lease is checked by the script, together with whose agent it is.
 */

import { z } from "zod";
import type { Entry } from "../../events/entry.ts";
import type { Outcome } from "../../lifecycle/writer.ts";
import type { Leaving } from "../../queue/parked-polls.ts";
import { leaseIdOf, parseLeaseId } from "../../redis/shards.ts";
import { type Message, messageSchema, withoutLease } from "../../schema/a2a.ts";
import { ErrandError } from "../../schema/errors.ts";
import type {
  artifactAnswerSchema,
  artifactRequestSchema,
  heartbeatRequestSchema,
  releaseRequestSchema,
} from "../../schema/lease.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import { afterMove, notifyReceivers } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { refusal } from "../errors.ts";
import { waitUntil } from "../events/wait.ts";

type Heartbeat = z.output<typeof heartbeatRequestSchema>;
type ArtifactChunk = z.output<typeof artifactRequestSchema>;
type Release = z.output<typeof releaseRequestSchema>;

/** The holder as the script wants to know it: the fence, and the caller's agent unless it is the operator. */
export function holder(
  principal: Principal,
  leaseId: string,
): { id: string; params: { fence: number; agent?: string } } {
  const { delegationId, fence } = parseLeaseId(leaseId);
  if (principal.kind === "operator") return { id: delegationId, params: { fence } };
  if (principal.kind !== "agent") {
    throw new ErrandError("forbidden", `${principal.text} holds no leases.`);
  }
  return { id: delegationId, params: { fence, agent: principal.name } };
}

type Beat = Extract<Outcome, { kind: "ok" }> & { readonly unseen: readonly string[] };

export interface HeartbeatResult {
  readonly expires_at: string;
  /** Follow-ups that the holder has not seen, oldest first. */
  readonly messages: readonly Message[];
  readonly progress_dropped?: true | undefined;
}

const messagesSchema = z.array(messageSchema);
const isFollowUp = (entry: Entry): boolean => entry.status === "message";

/**
 * Extends the lease; answers with the follow-ups that were not seen yet. Held, it answers as soon as there is one, or
 * the lease is gone, so a cancel arrives at once.
 */
export async function heartbeat(
  broker: Broker,
  principal: Principal,
  leaseId: string,
  request: Heartbeat,
  signal: Leaving,
): Promise<HeartbeatResult> {
  const { id, params } = holder(principal, leaseId);
  const { seen } = request;
  const beat = async (progress?: Heartbeat["progress"], checkpoint?: string): Promise<Beat> => {
    const json = progress === undefined ? undefined : JSON.stringify(progress);
    const { outcome, unseen } = await broker.writer.move({
      move: json === undefined ? "heartbeat" : "progress",
      id,
      params: { ...params, seen },
      event: { progress: json },
      fields: { progress: json, checkpoint },
    });
    if (outcome.kind !== "ok") throw refusal(outcome, id, leaseId);
    broker.presence.seen(outcome.target);
    notifyReceivers(broker, id, outcome);
    return { ...outcome, unseen };
  };
  const answer = (outcome: Beat) => ({
    expires_at: toInstant(outcome.lease_expires_at ?? outcome.now),
    messages: messagesSchema.parse(JSON.parse(`[${outcome.unseen.join(",")}]`)),
    ...(outcome.progress_dropped && { progress_dropped: outcome.progress_dropped }),
  });
  const kept = checkpointText(request.checkpoint);
  if (request.wait_seconds === 0) return answer(await beat(request.progress, kept));

  const patience = { wait_seconds: request.wait_seconds, signal };
  // Subscribed before the first beat: a cancel right behind it is heard.
  const waiting = waitUntil(
    broker.feed,
    id,
    patience,
    (entry) => entry.state !== "working" || isFollowUp(entry),
  );
  try {
    const first = await beat(request.progress, kept);
    if (first.unseen.length > 0) return answer(first);
    const half = ((first.lease_expires_at ?? first.now) - first.now) / 2;
    const cut = setTimeout(waiting.stop, half);
    await waiting.done;
    clearTimeout(cut);
    // Whoever has left, or may no more, does not hold it any longer for that.
    const { progress_dropped } = first;
    return answer(signal.aborted ? first : { ...(await beat()), progress_dropped });
  } finally {
    waiting.stop();
  }
}

/** As the record keeps it: an empty text is none. */
export function checkpointText(checkpoint: Heartbeat["checkpoint"]): string | undefined {
  if (checkpoint === undefined) return undefined;
  return checkpoint === null ? "" : JSON.stringify(checkpoint);
}

/**
 * Publishes and keeps a piece of output: a chunk replaces what has its id, or is appended. With a `chunk_id`, the last
 * chunk sent again is a duplicate.
 */
export async function addArtifact(
  broker: Broker,
  principal: Principal,
  leaseId: string,
  { artifact, append, last_chunk, chunk_id }: ArtifactChunk,
): Promise<z.infer<typeof artifactAnswerSchema>> {
  const { id, params } = holder(principal, leaseId);
  const kept = withoutLease(artifact);
  const { outcome } = await broker.writer.move({
    move: "artifact",
    id,
    params: {
      ...params,
      ...(chunk_id !== undefined && {
        chunk_id,
        chunk_hash: bodyHash({ artifact: kept, append, last_chunk }),
      }),
    },
    event: {
      chunk_id: chunk_id && JSON.stringify(chunk_id),
      append: JSON.stringify(append),
      last_chunk: JSON.stringify(last_chunk),
    },
    artifacts: [{ artifact: kept, append }],
    shows: "artifact",
  });
  if (outcome.kind !== "ok" && outcome.kind !== "duplicate") throw refusal(outcome, id, leaseId);
  broker.presence.seen(outcome.target);
  const expires_at = toInstant(outcome.lease_expires_at ?? outcome.now);
  if (outcome.kind === "duplicate") return { expires_at, duplicate: true };
  notifyReceivers(broker, id, outcome);
  return { expires_at };
}

/** Gives the delegation back; no attempt is spent. Returns the lease's delegation id. */
export async function release(
  broker: Broker,
  principal: Principal,
  leaseId: string,
  request: Release,
): Promise<string> {
  const { id, params } = holder(principal, leaseId);
  const { outcome } = await broker.writer.move({
    move: "release",
    id,
    params: { ...params, delay_ms: Math.round(request.delay_seconds * 1000) },
    event: { reason: request.reason === undefined ? undefined : JSON.stringify(request.reason) },
  });
  if (outcome.kind !== "ok") throw refusal(outcome, id, leaseIdOf(id, params.fence));
  await afterMove(broker, id, outcome);
  return id;
}
