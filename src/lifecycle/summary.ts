/**
 * Reads summaries: the few fields by which a list decides which records to read whole. Limit: `bytes` counts bodies as
 * the script does; their shown text may be twice as long.
 */
import * as z from "zod";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";
import { isTerminal } from "../schema/delegation.ts";
import { FIELDS, READERS, type Readable, type Value } from "./fields.ts";
import { FIELDS_OF_LUA } from "./read-fields.ts";

const PARSED = [
  ...(["state", "target", "delegator", "context_id", "parent_id", "root_delegator"] as const),
  ...(["created_at", "updated_at", "finished_at", "bytes"] as const),
] as const;
/** Packed fields. */
const SUMMARIZED = [...PARSED, "interrupt_id", "children"] as const;

type SummaryField = (typeof PARSED)[number] | "error";

export interface RecordSummary extends Readable<SummaryField> {
  readonly id: string;
  /** Of the open question. */
  readonly interrupt_id: string | null;
  readonly finished: boolean;
  /** Delegations were created under it. */
  readonly hasChildren: boolean;
  /** Its text, parsed; empty unless requested. */
  readonly task_preview: string;
}

const previewSchema = z.string();

/** KEYS: records · ARGV: own fields to add · Returns for each the values of SUMMARIZED and of these. */
const summariesScript = new Script(`#!lua flags=no-writes
${FIELDS_OF_LUA}
local rows = {}
for i, key in ipairs(KEYS) do
  rows[i] = fields_of(key, { ${SUMMARIZED.map((name) => `'${name}'`).join(", ")} })
  for n, value in ipairs(ARGV[1] and redis.call('HMGET', key, unpack(ARGV)) or {}) do
    rows[i][${SUMMARIZED.length} + n] = value
  end
end
return rows`);
const rowsSchema = z.array(z.array(z.union([z.string(), z.number(), z.null()])));

/** How many records one run of the script reads. */
const MOST = 100;

/** In the order of the ids; null for an id without a record. `error` and `task_preview` are read only on request. */
export async function readSummaries(
  redis: Redis,
  shards: Shards,
  ids: readonly string[],
  options: { readonly errors?: boolean; readonly previews?: boolean } = {},
): Promise<(RecordSummary | null)[]> {
  const own = [...(options.errors ? ["error"] : []), ...(options.previews ? ["task_preview"] : [])];
  const names: readonly string[] = [...SUMMARIZED, ...own];
  const found = new Map<string, RecordSummary | null>();
  const read = async (some: readonly string[], keys: readonly string[]) => {
    const rows = rowsSchema.parse(await summariesScript.run(redis, keys, own));
    for (const [at, id] of some.entries()) {
      found.set(
        id,
        toSummary(id, (name) => rows[at]?.[names.indexOf(name)] ?? ""),
      );
    }
  };
  const reads: Promise<void>[] = [];
  for (const shard of shards.all) {
    const here = ids.filter((id) => shards.ofId(id) === shard);
    for (let from = 0; from < here.length; from += MOST) {
      const some = here.slice(from, from + MOST);
      const keys = some.map((id) => shard.delegation(id));
      reads.push(read(some, keys));
    }
  }
  await Promise.all(reads);
  return ids.map((id) => found.get(id) ?? null);
}

function toSummary(id: string, value: (name: string) => Value): RecordSummary | null {
  if (value("state") === "") return null;
  const state = FIELDS.state.read(value("state"));
  // Only summaries have it: a field of FIELDS with `read` is in the answer to every move.
  const interrupt_id = value("interrupt_id");
  return {
    id,
    interrupt_id: interrupt_id === "" ? null : String(interrupt_id),
    finished: isTerminal(state),
    hasChildren: value("children") !== "",
    task_preview: previewSchema.parse(JSON.parse(FIELDS.task_preview.read(value("task_preview")))),
    get: (name) => READERS[name].read(value(name)),
  };
}
