/**
 * What a list has to know of a record before it is worth reading whole. Limit: `bytes` counts the bodies as the script
 * does; what is shown of them may be twice as long.
 */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import type { Shards } from "../redis/shards.ts";
import { isTerminal, type State, stateSchema } from "../schema/delegation.ts";

export interface RecordSummary {
  readonly id: string;
  readonly state: State;
  readonly target: string;
  readonly delegator: string;
  readonly context_id: string;
  readonly parent_id: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  /** The error's JSON text. */
  readonly error: string | null;
  readonly finished: boolean;
  /** Empty unless asked for. */
  readonly task_preview: string;
  /** Bytes of message, history, artifacts and reply, as JSON. */
  readonly bytes: number;
}

const previewSchema = z.string();

const FIELDS = [
  "state",
  "target",
  "delegator",
  "context_id",
  "parent_id",
  "created_at",
  "updated_at",
  "bytes",
];

/** In the order of the ids; null where there is no such record (any more). Errors and previews where they are asked for. */
export async function readSummaries(
  redis: Redis,
  shards: Shards,
  ids: readonly string[],
  options: { readonly errors?: boolean; readonly previews?: boolean } = {},
): Promise<(RecordSummary | null)[]> {
  // Fixed places: "-" is a field that no record has.
  const fields = [...FIELDS, options.errors ? "error" : "-", options.previews ? "task_preview" : "-"];
  const read = async (id: string): Promise<RecordSummary | null> => {
    const keys = shards.ofId(id);
    const row = keys ? await redis.hmget(keys.delegation(id), ...fields) : [];
    const [stored, target, delegator, context_id, parent_id, created_at, updated_at, bytes, error, preview] =
      row;
    if (!stored) return null;
    const state = stateSchema.parse(stored);
    return {
      id,
      state,
      target: target ?? "",
      delegator: delegator ?? "",
      context_id: context_id ?? "",
      parent_id: parent_id || null,
      created_at: Number(created_at),
      updated_at: Number(updated_at),
      error: error || null,
      finished: isTerminal(state),
      bytes: Number(bytes ?? 0),
      task_preview: preview ? previewSchema.parse(JSON.parse(preview)) : "",
    };
  };
  return Promise.all(ids.map(read));
}
