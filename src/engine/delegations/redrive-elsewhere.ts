/**
 * Redrives to another shard. A failed delegation and the one that repeats it are in one shard, unless the agent moved to
 * another shard since the failure; then these steps replace what one script does otherwise.
 */

import { isRecordLua } from "../../lifecycle/read-fields.ts";
import type { StoredDelegation } from "../../lifecycle/stored-delegation.ts";
import { Script } from "../../redis/script.ts";
import type { Broker, Records } from "../broker.ts";
import { refusal } from "../errors.ts";

/** KEYS: a failed delegation · Says, if it still exists, that the one that repeats it was erased. */
const erasedScript = new Script(`#!lua flags=allow-oom
if ${isRecordLua("KEYS[1]")} then redis.call('HSET', KEYS[1], 'redrive_erased', 1) end
return 1`);

const areTogether = ({ shards }: Pick<Broker, "shards">, a: string, b: string): boolean =>
  shards.indexOfId(a) === shards.indexOfId(b);

/**
 * The id under which the failed delegation is repeated; `id` has no record. Call it after the look for the record: if
 * it was erased, the failed delegation says so by then, and this throws.
 */
export async function idElsewhere(
  broker: Records & Pick<Broker, "writer">,
  failed: StoredDelegation,
  id: string,
  newId: string,
): Promise<string> {
  if (areTogether(broker, failed.id, newId)) return id;
  const key = broker.shards.ofId(failed.id)?.delegation(failed.id) ?? "";
  if ((await broker.redis.hexists(key, "redrive_erased")) === 1)
    throw refusal({ kind: "deleted", now: 0 }, id);
  if (areTogether(broker, id, newId)) return id;
  // It was chosen when the agent was in the other shard, and the delegation was never created.
  const { outcome } = await broker.writer.move({
    move: "redrive",
    id: failed.id,
    params: { new_id: newId, replaces: id },
  });
  if (outcome.kind === "redriven") return outcome.redriven_as;
  if (outcome.kind !== "ok") throw refusal(outcome, failed.id);
  return newId;
}

/** Called before a delegation is erased. */
export async function forbidRedrive(broker: Records, record: StoredDelegation): Promise<void> {
  const redrive_of = record.get("redrive_of");
  if (redrive_of === null || !record.finished || areTogether(broker, redrive_of, record.id)) return;
  const key = broker.shards.ofId(redrive_of)?.delegation(redrive_of);
  if (key !== undefined) await erasedScript.run(broker.redis, [key], []);
}
