/** Finds, by their nonces, leases that were granted although Redis' answer was lost. */
import type { Clock } from "../../lifecycle/command.ts";
import { FIELDS_OF_LUA } from "../../lifecycle/read-fields.ts";
import type { Redis } from "../../redis/connect.ts";
import { Script } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import type { Grant, LeaseRef } from "./in-doubt.ts";

/** The most leases that one run of the script reads. */
const PAGE = 1_000;
/** A gateway's clock and Redis' may differ by this much. */
const SLACK_MS = 60_000;

/**
 * KEYS: an agent's leases · ARGV: prefix of the records, oldest grant, how many of the newest to skip, how many to read,
 * the nonces · Returns how many it read, then delegation and fence of each that it found.
 */
const findGrantsScript = new Script(`#!lua flags=no-writes
${FIELDS_OF_LUA}
local wanted = {}
for i = 5, #ARGV do wanted[ARGV[i]] = true end
local ids = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', ARGV[2], 'LIMIT', ARGV[3], ARGV[4])
local found = { #ids }
for _, id in ipairs(ids) do
  local lease = fields_of(ARGV[1] .. id, { 'nonce', 'fence' })
  if lease[1] and wanted[lease[1]] then
    found[#found + 1], found[#found + 2] = id, lease[2]
  end
end
return found`);

export async function findGrants(
  { redis, shards, clock }: { readonly redis: Redis; readonly shards: Shards; readonly clock: Clock },
  agent: string,
  grants: readonly Grant[],
): Promise<LeaseRef[]> {
  const keys = shards.ofAgent(agent);
  const since = Math.min(...grants.map(({ at }) => at)) + clock.offset_ms - SLACK_MS;
  const nonces = grants.map(({ nonce }) => nonce);
  const found: LeaseRef[] = [];
  for (let skipped = 0, read = PAGE; read === PAGE; skipped += PAGE) {
    const answer = await findGrantsScript.run(
      redis,
      [keys.live(agent, "working")],
      [keys.delegation(""), since, skipped, PAGE, ...nonces],
    );
    const [count = "0", ...leases] = Array.isArray(answer) ? answer.map(String) : [];
    read = Number(count);
    for (let i = 0; i + 1 < leases.length; i += 2) {
      found.push({ delegation_id: leases[i] ?? "", fence: Number(leases[i + 1]) });
    }
  }
  return found;
}
