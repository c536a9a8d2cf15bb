/**
 * Reads summaries: the few fields by which a list decides which records to read whole. Limit: `bytes` counts bodies as
 * the script does; their shown text may be twice as long.
 */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import type { Shards } from "../redis/shards.ts";
import { isTerminal } from "../schema/delegation.ts";
import { FIELDS, type ReadFields } from "./fields.ts";

type Summarized =
  | "state"
  | "target"
  | "delegator"
  | "context_id"
  | "parent_id"
  | "created_at"
  | "updated_at"
  | "bytes"
  | "error";

export interface RecordSummary extends Pick<ReadFields, Summarized> {
  readonly id: string;
  readonly finished: boolean;
  /** Empty unless requested. */
  readonly task_preview: string;
}

const previewSchema = z.string();

/** In the order of the ids; null for an id without a record. `error` and `task_preview` are read only on request. */
export async function readSummaries(
  redis: Redis,
  shards: Shards,
  ids: readonly string[],
  options: { readonly errors?: boolean; readonly previews?: boolean } = {},
): Promise<(RecordSummary | null)[]> {
  const summarized = [
    ...["state", "target", "delegator", "context_id", "parent_id", "created_at", "updated_at", "bytes"],
    ...(options.errors ? ["error"] : []),
    ...(options.previews ? ["task_preview"] : []),
  ];
  const read = async (id: string): Promise<RecordSummary | null> => {
    const keys = shards.ofId(id);
    const row = keys ? await redis.hmget(keys.delegation(id), ...summarized) : [];
    const text = (name: string) => row[summarized.indexOf(name)] ?? "";
    if (text("state") === "") return null;
    const state = FIELDS.state.read(text("state"));
    return {
      id,
      state,
      target: FIELDS.target.read(text("target")),
      delegator: FIELDS.delegator.read(text("delegator")),
      context_id: FIELDS.context_id.read(text("context_id")),
      parent_id: FIELDS.parent_id.read(text("parent_id")),
      created_at: FIELDS.created_at.read(text("created_at")),
      updated_at: FIELDS.updated_at.read(text("updated_at")),
      bytes: FIELDS.bytes.read(text("bytes")),
      error: FIELDS.error.read(text("error")),
      finished: isTerminal(state),
      task_preview: previewSchema.parse(JSON.parse(FIELDS.task_preview.read(text("task_preview")))),
    };
  };
  return Promise.all(ids.map(read));
}
