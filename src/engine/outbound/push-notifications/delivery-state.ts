/**
 * The delivery state of each push config of a delegation, in Redis. Fields, each followed by the config's id:
 * - `at:` the stream id of the last event that its receiver accepted;
 * - `job:` the number of its job; absent: all events are delivered; `over`: given up;
 * - `since:` when its calls began to fail, ms;
 * - `part:` how many updates of the next event its receiver accepted.
 * lifecycle/lua/lazy/push.lua creates the config and these fields.
 *
 * Events are delivered in order because a config has one job at a time. A job that finds no undelivered event is removed
 * in the same script, so the next event creates a new one. A job with an old number does nothing.
 */
import * as z from "zod";
import { type Entry, toEntry } from "../../../events/entry.ts";
import { OWN_LUA } from "../../../events/stored.ts";
import { Script } from "../../../redis/script.ts";
import { type StoredPushConfig, storedPushConfigSchema } from "../../../schema/push-config.ts";
import type { Broker } from "../../broker.ts";

/** KEYS: pushes, pushed, events · Returns each config with undelivered events, and its job. */
const ensureJobsScript = new Script(`#!lua flags=allow-oom
${OWN_LUA}
local jobs = {}
for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do
  local job = redis.call('HGET', KEYS[2], 'job:' .. id)
  if not job then
    local at = redis.call('HGET', KEYS[2], 'at:' .. id) or '0-0'
    if #own_from(KEYS[3], '(' .. at)(1) > 0 then
      job = tostring(redis.call('HINCRBY', KEYS[2], '#', 1))
      redis.call('HSET', KEYS[2], 'job:' .. id, job)
    end
  end
  if job and job ~= 'over' then
    jobs[#jobs + 1] = id
    jobs[#jobs + 1] = job
  end
end
return jobs`);

/**
 * KEYS: pushes, pushed, events · ARGV: id, job, the event that was just accepted or '' · Returns config, since, part,
 * event id, event.
 */
const advanceScript = new Script(`#!lua flags=allow-oom
${OWN_LUA}
local id, job = ARGV[1], ARGV[2]
if redis.call('HGET', KEYS[2], 'job:' .. id) ~= job then return {} end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], 'at:' .. id, ARGV[3])
  redis.call('HDEL', KEYS[2], 'since:' .. id, 'part:' .. id)
end
local at = redis.call('HGET', KEYS[2], 'at:' .. id) or '0-0'
local entry = own_from(KEYS[3], '(' .. at)(1)[1]
local config = redis.call('HGET', KEYS[1], id)
if not entry or not config then
  redis.call('HDEL', KEYS[2], 'job:' .. id)
  return {}
end
local noted = redis.call('HMGET', KEYS[2], 'since:' .. id, 'part:' .. id)
return { config, noted[1] or '', noted[2] or '0', entry[1], entry[2][2] }`);

/** KEYS: pushed · ARGV: id, job, then the names and values to store. */
const saveStateScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'job:' .. ARGV[1]) ~= ARGV[2] then return 0 end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i] .. ':' .. ARGV[1], ARGV[i + 1]) end
return 1`);

/** KEYS: pushes, pushed · ARGV: id. */
const deleteScript = new Script(`#!lua flags=allow-oom
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], 'at:' .. ARGV[1], 'job:' .. ARGV[1], 'since:' .. ARGV[1], 'part:' .. ARGV[1])
return 1`);

function keysOf(broker: Broker, id: string): { pushes: string; pushed: string; events: string } {
  const keys = broker.shards.ofId(id);
  if (!keys) throw new TypeError("not a delegation's id");
  return { pushes: keys.pushes(id), pushed: keys.pushed(id), events: keys.delegationEvents(id) };
}

/** The configs with undelivered events, each with the number of its job. Repeated calls return the same jobs. */
export async function ensureJobs(broker: Broker, id: string): Promise<{ push: string; job: number }[]> {
  const { pushes, pushed, events } = keysOf(broker, id);
  const found = z
    .array(z.string())
    .parse(await ensureJobsScript.run(broker.redis, [pushes, pushed, events], []));
  return found.flatMap((push, at) => (at % 2 === 0 ? [{ push, job: Number(found[at + 1]) }] : []));
}

export interface NextEvent {
  readonly config: StoredPushConfig;
  /** When its calls began to fail, ms; null: they succeed. */
  readonly since: number | null;
  /** How many updates of the event were accepted. */
  readonly part: number;
  readonly entry: Entry;
}

const nextEventSchema = z.union([
  z.tuple([]),
  z.tuple([z.string(), z.string(), z.string(), z.string(), z.string()]),
]);

/** Stores that `accepted` was delivered, and returns the next event; null when the job is done. */
export async function advance(
  broker: Broker,
  id: string,
  push: string,
  job: number,
  accepted: string | null,
): Promise<NextEvent | null> {
  const { pushes, pushed, events } = keysOf(broker, id);
  const answer = await advanceScript.run(broker.redis, [pushes, pushed, events], [push, job, accepted ?? ""]);
  const [config, since = "", part = "0", event_id = "", text = ""] = nextEventSchema.parse(answer);
  if (config === undefined) return null;
  return {
    config: storedPushConfigSchema.parse(JSON.parse(config)),
    since: since === "" ? null : Number(since),
    part: Number(part),
    entry: toEntry(broker.shards.indexOfId(id) ?? 0, event_id, ["e", text]),
  };
}

export interface DeliveryState {
  readonly since?: number | undefined;
  readonly part?: number | undefined;
  /** `over`: the delivery is given up. */
  readonly job?: "over" | undefined;
}

/** Stores the state of the delivery of the job's current event. */
export async function saveState(
  broker: Broker,
  id: string,
  push: string,
  job: number,
  state: DeliveryState,
): Promise<void> {
  const pairs = Object.entries(state).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  await saveStateScript.run(broker.redis, [keysOf(broker, id).pushed], [push, job, ...pairs]);
}

export async function deleteConfig(broker: Broker, id: string, push: string): Promise<void> {
  const { pushes, pushed } = keysOf(broker, id);
  await deleteScript.run(broker.redis, [pushes, pushed], [push]);
}

/** All configs of a delegation, ordered by id. */
export async function configs(broker: Broker, id: string): Promise<StoredPushConfig[]> {
  const stored = Object.values(await broker.redis.hgetall(keysOf(broker, id).pushes));
  const found = stored.map((json) => storedPushConfigSchema.parse(JSON.parse(json)));
  return found.sort((a, b) => (a.id < b.id ? -1 : 1));
}
