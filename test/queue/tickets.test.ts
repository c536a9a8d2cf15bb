/** Which agents have queued work, in one command for each shard. */
import { pino } from "pino";
import { expect, test } from "vitest";
import { Tickets } from "../../src/queue/tickets.ts";
import { Shards } from "../../src/redis/shards.ts";
import { database, takeTicket } from "../support/ticket-queue.ts";

const NOW = { priority: 5, returned: false, delay_ms: 0 };

test("the agents whose queues are not empty are found in every shard, delayed tickets included", async () => {
  const shards = new Shards(2);
  const redis = await database();
  const tickets = new Tickets(redis, shards, pino({ level: "silent" }));
  const agents = Array.from({ length: 8 }, (_, n) => `agent-${n}`);
  const inShard = (shard: number) => agents.filter((agent) => shards.indexOfAgent(agent) === shard);
  const [ready = "", taken = ""] = inShard(0);
  const [delayed = ""] = inShard(1);
  expect(await tickets.findQueued(agents)).toEqual([]);
  const ticket = { delegation_id: "dlg_0_a", ticket: 1 };
  await tickets.add(ready, ticket, NOW);
  await tickets.add(delayed, ticket, { ...NOW, delay_ms: 60_000 });
  await tickets.add(taken, ticket, NOW);
  await takeTicket(redis, `${shards.ofAgent(taken).queuePrefix}:${taken}`);
  expect((await tickets.findQueued(agents)).sort()).toEqual([ready, delayed].sort());
});
