/** Adds artifacts to a delegation, chunk by chunk, for the holder of its lease. */
import type * as z from "zod";
import { withoutLease } from "../../schema/a2a.ts";
import type { artifactAnswerSchema, artifactRequestSchema } from "../../schema/lease.ts";
import { toInstant } from "../../schema/values.ts";
import type { Principal } from "../access/access.ts";
import { type Moves, notifyReceivers } from "../after-move.ts";
import type { Broker } from "../broker.ts";
import { bodyHash } from "../delegations/idempotency.ts";
import { refusal } from "../errors.ts";
import { type NamesFiles, nameFilesOf } from "../files/name-files.ts";
import { asHolder } from "./as-holder.ts";
import { holderOf } from "./holder.ts";

type ArtifactChunk = z.output<typeof artifactRequestSchema>;

/**
 * Stores and publishes a chunk: it replaces the artifact with its id, or is appended to it. With a `chunk_id`, repeating
 * the last chunk returns `duplicate`.
 */
export async function addArtifact(
  broker: Moves & NamesFiles & Pick<Broker, "presence">,
  principal: Principal,
  leaseId: string,
  { artifact, append, last_chunk, chunk_id }: ArtifactChunk,
): Promise<z.infer<typeof artifactAnswerSchema>> {
  const { id, params } = holderOf(principal, leaseId);
  const kept = withoutLease(artifact);
  const named = await nameFilesOf(broker, principal, id, kept, params);
  const { outcome } = await asHolder(broker, id, params, () =>
    broker.writer.move({
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
      artifacts: [{ artifact: named, append }],
      shows: "artifact",
    }),
  );
  if (outcome.kind !== "ok" && outcome.kind !== "duplicate") throw refusal(outcome, id, leaseId);
  broker.presence.seen(outcome.target);
  const expires_at = toInstant(outcome.lease_expires_at ?? outcome.now);
  if (outcome.kind === "duplicate") return { expires_at, duplicate: true };
  notifyReceivers(broker, id, outcome);
  return { expires_at };
}
