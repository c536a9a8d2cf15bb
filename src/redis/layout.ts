/**
 * The layout of the data: the number of shards, and the versions that can read it. A gateway of an older version would
 * treat this version's records as deleted and drop their tickets, so the two must not share data. Limit: an older
 * gateway that starts at the moment of the upgrade is not noticed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "./connect.ts";
import { keys } from "./keys.ts";
import { writeEvenIfFull } from "./script.ts";

/** The data is laid out for another number of shards, or gateways of an older version use it. */
export class LayoutError extends Error {
  override readonly name = "LayoutError";
}

/** Stored after the number of shards. Older versions compare the whole text with their number and refuse to start. */
const MARK = ", written by a newer version";

/** Stored in place of the number of shards while a backup is being restored, so that no gateway starts. */
const RESTORING = "0, a restore has not finished";

/** A gateway without a sign of life for this long is dead. */
const DEAD_MS = 15_000;

/** Throws {@link LayoutError} unless a gateway with this number of shards may start; takes over older data. */
export async function checkLayout(redis: Redis, shards: number, deadMs = DEAD_MS): Promise<void> {
  const marked = `${shards}${MARK}`;
  let stored = await redis.hget(keys.layout, "shards");
  if (stored === null) {
    // Written only once, and even at full memory, so that a gateway can start then.
    await writeEvenIfFull(redis, "HSETNX", keys.layout, "shards", marked);
    stored = await redis.hget(keys.layout, "shards");
  }
  if (stored === RESTORING) {
    throw new LayoutError(
      "The restore of a backup has not finished. Wait until it ends; if it failed, run 'errand restore' again.",
    );
  }
  const count = Number.parseInt(stored ?? "", 10);
  if (count !== shards) {
    throw new LayoutError(
      `The data is laid out for ERRAND_SHARDS=${count}, not ${shards}. Start with ${count}, or with an empty Redis.`,
    );
  }
  if (stored === marked) return;
  await requireNoneAlive(redis, marked, deadMs);
  await writeEvenIfFull(redis, "HSET", keys.layout, "shards", marked);
}

/** Keeps gateways from starting on this data until the key of the layout is restored or deleted. */
export async function markRestoring(redis: Redis): Promise<void> {
  await writeEvenIfFull(redis, "HSET", keys.layout, "shards", RESTORING);
}

/** `restoring`: a restore has not finished, so the data is not complete. */
export async function storedData(redis: Redis): Promise<"none" | "complete" | "restoring"> {
  const stored = await redis.hget(keys.layout, "shards");
  if (stored === null) return "none";
  return stored === RESTORING ? "restoring" : "complete";
}

/**
 * How many gateways are alive. One that was killed counts for {@link DEAD_MS}. No clock is trusted alone: a gateway
 * whose sign of life is not recent by Redis' clock is watched for {@link DEAD_MS}, in case its own clock is wrong.
 */
export async function countAlive(redis: Redis, deadMs = DEAD_MS): Promise<number> {
  const now = Number((await redis.time())[0]) * 1_000;
  const recent = await redis.zcount(keys.gateways, now - deadMs, now + deadMs);
  if (recent > 0) return recent;
  const before = await signsOfLife(redis);
  const start = performance.now();
  while (before.size > 0 && performance.now() - start <= deadMs) {
    await sleep(Math.min(200, deadMs));
    const changed = [...(await signsOfLife(redis))].filter(([name, at]) => before.get(name) !== at);
    if (changed.length > 0) return changed.length;
  }
  return 0;
}

async function signsOfLife(redis: Redis): Promise<Map<string, string>> {
  const found = await redis.zrange(keys.gateways, "0", "-1", "WITHSCORES");
  return new Map(found.flatMap((name, n) => (n % 2 === 0 ? [[name, found[n + 1] ?? ""]] : [])));
}

/** Waits until gateways that were killed count as dead. */
async function requireNoneAlive(redis: Redis, marked: string, deadMs: number): Promise<void> {
  const start = Date.now();
  while (Date.now() - start <= deadMs) {
    const alive = await redis.zcount(keys.gateways, start + 1, "+inf");
    // Another gateway of this version may have taken over the data meanwhile.
    if ((await redis.hget(keys.layout, "shards")) === marked) return;
    if (alive > 0) {
      throw new LayoutError(
        "A gateway of an older version uses this data and would drop newer delegations. Stop all gateways, then start this one.",
      );
    }
    if ((await redis.zcount(keys.gateways, start - deadMs, "+inf")) === 0) return;
    await sleep(Math.min(200, deadMs));
  }
}
