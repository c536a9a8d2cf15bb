/**
 * One agent's queue of tickets on a database of its own, with BullMQ's own objects beside the script's functions.
 * Limit: one agent, `scout`.
 */
import { createRedisBackend, type IQueueBackend, Queue } from "bullmq";
import { Redis } from "ioredis";
import { inject, onTestFinished } from "vitest";
import * as z from "zod";
import { TICKET_LUA } from "../../src/queue/ticket-script.ts";
import { Script } from "../../src/redis/script.ts";
import { freshDb } from "./broker.ts";
import { dump } from "./dump.ts";

const PREFIX = "{errand:0}:q";
const NAME = "scout";
export const QUEUE = `${PREFIX}:${NAME}`;

export async function database() {
  const redis = new Redis(inject("redisSocket"), { db: await freshDb() });
  onTestFinished(() => redis.disconnect());
  return redis;
}

export async function bullmq(redis: Redis) {
  const options = {
    connection: redis,
    prefix: PREFIX,
    lockDuration: 30_000,
    streams: { events: { maxLen: 1 } },
    skipWaitingForReady: true,
  };
  const backend = createRedisBackend("root", options).forQueue(NAME, PREFIX);
  const queue: Queue<unknown, unknown, string, unknown, unknown, string, IQueueBackend> = new Queue(
    NAME,
    options,
    () => backend,
  );
  await queue.waitUntilReady();
  return { queue, backend };
}

const takeScript = new Script(`#!lua
${TICKET_LUA}
local id, found = ticket_take(KEYS[1], redis_ms())
return { id or '', id and found or math.ceil(found or 0) }`);

const takenSchema = z.tuple([z.string(), z.number()]);

/** Takes the first ticket of a queue as a lease does. `next_due_at`: when the next delayed one is due, ms. */
export async function takeTicket(redis: Redis, queue: string = QUEUE) {
  const [delegation_id, number] = takenSchema.parse(await takeScript.run(redis, [queue], []));
  if (delegation_id !== "") return { found: { delegation_id, ticket: number } };
  return { found: null, next_due_at: number === 0 ? null : number };
}

/** Keys that only BullMQ's Worker, its QueueEvents and jobs without an id need. */
export const FOR_OTHERS = ["id", "events", "marker"].map((name) => `${QUEUE}:${name}`);
/** What the script keeps of turns, and the counter by which BullMQ orders jobs. */
export const FOR_TURNS = ["{errand:0}:turns:scout", `${QUEUE}:pc`];

/** The part of a delegation's record that a ticket needs. */
export const RECORD_LUA = `
local function set_record(queue, id, delegator)
  redis.call('HSET', string.match(queue, '^(.-):q:') .. ':d:' .. id, 'packed', cmsgpack.pack({ delegator = delegator }))
end`;

/** A band of the script's priorities is one priority of BullMQ's. */
const rankOf = (priority: unknown): number =>
  Number(priority) < 0x10000 ? Number(priority) : Math.floor(Number(priority) / 0x10000);

/** A database as text, without instants. */
export async function comparable(redis: Redis, without: readonly string[]): Promise<string> {
  return (await exact(redis, without))
    .replaceAll(/\d{13}-\d+/g, "<id>")
    .replaceAll(/\b\d{13}\b/g, "<ms>")
    .replaceAll(/\b\d{16,}\b/g, "<due>");
}

/** A database as text, without BullMQ's name of itself, records, and the scores in a band. */
export async function exact(redis: Redis, without: readonly string[]): Promise<string> {
  const state = await dump(redis);
  for (const key of without) delete state[key];
  for (const key of Object.keys(state)) if (key.startsWith("{errand:0}:d:")) delete state[key];
  const waiting = state[`${QUEUE}:prioritized`];
  if (Array.isArray(waiting)) state[`${QUEUE}:prioritized`] = waiting.filter((_, at) => at % 2 === 0);
  for (const [key, fields] of Object.entries(state)) {
    // The order of a hash's fields and an object's members is irrelevant. A caller that passes the time has it among
    // the options.
    if (!fields || Array.isArray(fields) || typeof fields !== "object") continue;
    const { timestamp: _, ...opts } = JSON.parse("opts" in fields ? String(fields.opts) : "{}");
    if ("priority" in fields) Object.assign(fields, { priority: rankOf(fields.priority) });
    if ("priority" in opts) opts.priority = rankOf(opts.priority);
    state[key] = [...Object.entries({ ...fields, opts: null }).sort(), ...Object.entries(opts).sort()];
  }
  return JSON.stringify(state, (_, value) => (Array.isArray(value) && value[0] === "version" ? null : value));
}
