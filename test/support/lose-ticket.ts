/**
 * Deletes tickets, as a Redis that lost a write would, or a person who edits BullMQ's keys. Limit: only tickets of
 * waiting delegations.
 */
import type { Broker } from "../../src/engine/broker.ts";
import { fieldsOf, setFields } from "./record.ts";

type Stores = Pick<Broker, "redis" | "shards" | "tickets">;

/** Removes the ticket of a waiting delegation from its queue, in any state; false if there is none. */
export async function loseTicket({ redis, shards, tickets }: Stores, id: string): Promise<boolean> {
  const key = keysOf(shards, id).delegation(id);
  const { state, target, ticket } = await fieldsOf(redis, key);
  if (state !== "submitted" || !target) return false;
  await tickets.discard(target, { delegation_id: id, ticket: Number(ticket) });
  return true;
}

/** Makes the next sweep check the ticket, however long its check was postponed. */
export async function checkSoon({ redis, shards }: Stores, id: string): Promise<void> {
  const keys = keysOf(shards, id);
  await setFields(redis, keys.delegation(id), { check_at: 1 });
  await redis.zadd(keys.due, "1", id);
}

function keysOf(shards: Stores["shards"], id: string) {
  const keys = shards.ofId(id);
  if (!keys) throw new RangeError(`no shard has ${id}`);
  return keys;
}
