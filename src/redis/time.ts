/** Redis' clock, which all gateways use, because their own clocks may differ. */
import type { Redis } from "./connect.ts";
import { readLua } from "./script.ts";

/** For scripts: `redis_ms()`. */
export const TIME_LUA = readLua("./time.lua", import.meta.url);

/** The time of the engine, ms since 1970: Redis' clock, and what a test adds to it. */
export const engineTime = async (
  redis: Redis,
  { offset_ms }: { readonly offset_ms: number },
): Promise<number> => (await timeOf(redis)) + offset_ms;

/** Ms since 1970. */
export async function timeOf(redis: Redis): Promise<number> {
  const [seconds, micros] = (await redis.time()).map(Number);
  return (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000);
}
