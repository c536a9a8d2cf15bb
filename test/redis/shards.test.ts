import { expect, test } from "vitest";
import { NO_HISTORY, Shards, shardOfName } from "../../src/redis/shards.ts";

const agents = Array.from({ length: 40 }, (_, n) => `agent-${n}`);

test("items are grouped by the shard of their agent, each once and in their order", () => {
  const shards = new Shards(4);
  const items = agents.map((agent, place) => ({ agent, place }));
  const groups = shards.groupByShard(items, ({ agent }) => agent);
  expect(new Set(groups.keys())).toEqual(new Set(shards.all));
  for (const [shard, keys] of shards.all.entries()) {
    expect(groups.get(keys)).toEqual(items.filter(({ agent }) => shardOfName(agent, 4) === shard));
  }
});

test("an agent that stayed in its old shard when the number grew is in the group of that shard", () => {
  const moved = agents.find((agent) => shardOfName(agent, 4) !== 0) ?? "";
  const shards = new Shards(4, { ...NO_HISTORY, placed: new Map([[moved, 0]]) });
  expect([...shards.groupByShard([moved], (agent) => agent)]).toEqual([[shards.at(0), [moved]]]);
});

test("without items there are no groups", () => {
  expect(new Shards(4).groupByShard([], String).size).toBe(0);
});
