/**
 * Tells a waiting parent when its children end. Marking the children as expected is a pending delivery of the parent;
 * reporting an end is a pending delivery of the child. Each step may repeat, in any order: a child that ended before it was
 * marked is counted by whoever finds that out.
 *
 *   parent  await, expecting 3 ──► expect each child ──► follow_up, nothing is pending
 *   child                          expected … complete, reports ──► child_ended at the parent ──► follow_up
 */

import { readSummaries } from "../../lifecycle/summary.ts";
import { isTerminal } from "../../schema/delegation.ts";
import { afterMove, type Moves } from "../after-move.ts";
import type { Records } from "../broker.ts";
import { GONE } from "../leases/awaited.ts";

const AT_ONCE = 16;

/**
 * Marks the children that have not ended as expected. `fence`: of the lease that began to wait. Throws the first failure after
 * all were tried: the shard of one child must not keep the others from being counted.
 */
export async function expectEnds(broker: Moves & Records, id: string, fence: number): Promise<void> {
  const keys = broker.shards.ofId(id);
  const awaited = keys ? await broker.redis.hgetall(keys.awaits(id)) : {};
  const live = Object.keys(awaited).filter((child) => awaited[child] === "");
  const failures: unknown[] = [];
  for (let from = 0; from < live.length; from += AT_ONCE) {
    const some = live.slice(from, from + AT_ONCE).map((child) => expectEnd(broker, id, child));
    for (const result of await Promise.allSettled(some))
      if (result.status === "rejected") failures.push(result.reason);
  }
  if (failures.length > 0) throw failures[0];
  await broker.writer.move({ move: "follow_up", id, params: { expected: fence } });
}

async function expectEnd(broker: Moves, parent: string, child: string): Promise<void> {
  const { outcome } = await broker.writer.move({ move: "expect", id: child });
  if (outcome.kind === "missing") await countEnd(broker, parent, child, GONE);
  else if (outcome.kind === "state") await countEnd(broker, parent, child, outcome.state);
}

/** Counts the end of a delegation at the parent that waits for it. */
export async function reportEnd(broker: Moves & Records, id: string, parent: string): Promise<void> {
  const [summary] = await readSummaries(broker.redis, broker.shards, [id]);
  const state = summary?.get("state");
  if (state !== undefined && isTerminal(state)) await countEnd(broker, parent, id, state);
  await broker.writer.move({ move: "follow_up", id, params: { reported: true } });
}

/** If the parent no longer waits, nothing happens. */
async function countEnd(broker: Moves, parent: string, child_id: string, child_state: string): Promise<void> {
  const { outcome } = await broker.writer.move({
    move: "child_ended",
    id: parent,
    params: { child_id, child_state },
  });
  if (outcome.kind === "ok") await afterMove(broker, parent, outcome);
}
