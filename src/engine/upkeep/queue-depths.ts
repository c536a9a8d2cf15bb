/**
 * Depth and age of every queue that is not empty, for metrics and charts. Redis looks at each agent, in small steps; the
 * gateway reads only agents with work. Limit: not a snapshot.
 */
import type { ShardKeys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import type { QueueDepth } from "../../telemetry/metrics.ts";
import type { Broker, BulkReads } from "../broker.ts";

/** Agents of one step, about 0.1 ms of Redis: few, because nobody waits for the figures. */
const AGENTS_AT_ONCE = 100;

const script = new Script(`#!lua flags=no-writes\n${readLua("./queue-depths.lua", import.meta.url)}`);

/** In the order of the names. */
export async function queueDepths(broker: BulkReads & Pick<Broker, "clock">): Promise<QueueDepth[]> {
  // By name, because a scan may return an agent twice.
  const depths = new Map<string, QueueDepth>();
  for (const keys of broker.shards.all) {
    for await (const depth of ofShard(broker, keys)) depths.set(depth.agent, depth);
  }
  return [...depths.values()].sort((a, b) => (a.agent < b.agent ? -1 : 1));
}

async function* ofShard(
  { bulk, clock }: Pick<Broker, "bulk" | "clock">,
  keys: ShardKeys,
): AsyncGenerator<QueueDepth, void> {
  let cursor = "0";
  do {
    const now = Date.now() + clock.offset_ms;
    const answer = await script.run(bulk, [keys.agents], [keys.base, now, cursor, AGENTS_AT_ONCE]);
    const [next = "0", ...found] = Array.isArray(answer) ? answer.map(String) : [];
    for (let at = 0; at < found.length; at += 4) {
      const [waiting = 0, since = now, working = 0] = found.slice(at + 1, at + 4).map(Number);
      const oldest_seconds = Math.max(0, now - since) / 1000;
      yield { agent: found[at] ?? "", waiting, working, oldest_seconds };
    }
    cursor = next;
  } while (cursor !== "0");
}
