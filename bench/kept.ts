/**
 * Fills a broker with finished delegations fast: one is really processed, and everything it left in Redis is cloned, so
 * the clones match what the broker stores. Limit: for a database without delegations; an unknown kind of key is an error.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { Gateway } from "./gateway.ts";
import type { ErrandLoad } from "./load.ts";
import type { Options } from "./options.ts";
import type { Stage } from "./stage.ts";

const run = promisify(execFile);

interface Text {
  readonly text: string;
  /** Contains an id that is different in every clone. */
  readonly named: boolean;
}

/** A packed field of a record: a text, or a number. */
type Packed = { readonly name: string } & (Text | { readonly number: number });

interface Recipe {
  readonly id: string;
  readonly context_id: string;
  readonly keys: { name: string; type: "hash" | "list"; values: Text[]; packed: Packed[]; ttl_ms: number }[];
  readonly zsets: { key: string; member: string; score: number }[];
  /** Added with one id to every stream that has it. */
  readonly events: { id: string; fields: Text[]; copies: { key: string }[] }[];
}

const delegationSchema = z.looseObject({
  id: z.string(),
  context_id: z.string(),
  state: z.literal("completed"),
  message: z.looseObject({ metadata: z.looseObject({ delegation_id: z.string() }) }),
  reply: z.looseObject({}),
});

/** Bounded in length, so they do not grow with the delegations: the live feed, and BullMQ's own. */
const isBounded = (key: string): boolean => /^\{errand:\w+\}:(?:events$|q:)/.test(key);
const BATCH = 250;
const TRIAL = 2_000;
/** Share of the free memory that may be used. */
const SHARE = 0.7;

const script = readFileSync(new URL("./clone.lua", import.meta.url), "utf8");

export async function keep(
  { stage, gateway, load }: { stage: Stage; gateway: Gateway; load: ErrandLoad },
  options: Options,
  say: (line: string) => void,
): Promise<{ count: number; bytes_each: number }> {
  const { redis } = stage;
  const record = delegationSchema.parse(JSON.parse(await load.one(options.bytes)));
  const recipe = JSON.stringify(await recipeOf(redis, record.id, record.context_id));
  await stage.fsync("everysec");
  const startedAt = Date.now();
  const empty = await stage.usedMemory();
  const fill = async (from: number, to: number): Promise<string> => {
    let last = "";
    for (let at = from; at <= to; at += BATCH) {
      last = String(await redis.eval(script, 0, recipe, at, Math.min(to, at + BATCH - 1)));
      if (at % 100_000 < BATCH && at > BATCH)
        say(`kept: ${at} so far, ${((Date.now() - startedAt) / 1000).toFixed(0)} s`);
      // The gateway has other keys in this Redis.
      await sleep(1);
    }
    return last;
  };
  const trial = Math.min(TRIAL, options.kept);
  let last = await fill(1, trial);
  const each = ((await stage.usedMemory()) - empty) / trial;
  // A few clones may take less than what Redis frees meanwhile.
  const fits = each > 0 ? Math.floor((freemem() * SHARE) / each) : options.kept;
  const count = Math.min(options.kept, fits);
  if (count < options.kept) say(`kept: memory for ${count} only, at ${each.toFixed(0)} bytes each`);
  if (count > trial) last = await fill(trial + 1, count);
  const clone = delegationSchema.parse(await gateway.read(last));
  if (clone.id !== last || clone.message.metadata.delegation_id !== last)
    throw new Error("the clones are broken");
  const bytes_each = Math.round(((await stage.usedMemory()) - empty) / count);
  say(`kept: ${count} in ${((Date.now() - startedAt) / 1000).toFixed(0)} s, ${bytes_each} bytes each`);
  // As long as the kernel writes gigabytes of clones to the disk, every fsync waits.
  await run("sync");
  await stage.fsync("always");
  return { count, bytes_each };
}

/** Every key in the database that names this delegation or its context. */
async function recipeOf(redis: Redis, id: string, context_id: string): Promise<Recipe> {
  const names = (text: string) => text.includes(id) || text.includes(context_id);
  const texts = (list: readonly string[]): Text[] => list.map((text) => ({ text, named: names(text) }));
  const recipe: Recipe = { id, context_id, keys: [], zsets: [], events: [] };
  for (const key of await redis.keys("*")) {
    if (isBounded(key)) continue;
    const type = await redis.type(key);
    if (type === "stream") {
      for (const [event, fields] of await redis.xrange(key, "-", "+")) {
        if (!names(key) && !fields.some(names)) continue;
        const known = recipe.events.find((other) => other.id === event);
        if (known) known.copies.push({ key });
        else recipe.events.push({ id: event, fields: texts(fields), copies: [{ key }] });
      }
    } else if (type === "zset") {
      const flat = await redis.zrange(key, "0", "-1", "WITHSCORES");
      for (let i = 0; i + 1 < flat.length; i += 2) {
        const member = flat[i] ?? "";
        if (names(key) || names(member)) recipe.zsets.push({ key, member, score: Number(flat[i + 1]) });
      }
    } else if (names(key) && (type === "hash" || type === "list")) {
      const { packed, values } = type === "hash" ? await hash(redis, key) : await list(redis, key);
      recipe.keys.push({
        name: key,
        type,
        values: texts(values),
        packed: packed.map(([name, value]) =>
          typeof value === "number" ? { name, number: value } : { name, text: value, named: names(value) },
        ),
        ttl_ms: await redis.pttl(key),
      });
    } else if (names(key) || (await mentions(redis, key, type, names))) {
      throw new Error(`${key} (${type}) names a delegation, and how to clone that is not known`);
    }
  }
  // Its id comes from a shared stream, where the last id is the greatest.
  for (const { copies } of recipe.events) copies.sort((a, b) => Number(names(a.key)) - Number(names(b.key)));
  recipe.events.sort((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
  return recipe;
}

const list = async (redis: Redis, key: string) => ({ packed: [], values: await redis.lrange(key, 0, -1) });

const hashSchema = z.tuple([
  z.array(z.tuple([z.string(), z.union([z.string(), z.number()])])),
  z.array(z.string()),
]);

/** The fields of a hash, and those of its field `packed`; see src/lifecycle/fields.ts. */
async function hash(redis: Redis, key: string) {
  const answer = await redis.eval(
    `local flat, packed, values = redis.call('HGETALL', KEYS[1]), {}, {}
for i = 1, #flat, 2 do
  if flat[i] == 'packed' then
    for name, value in pairs(cmsgpack.unpack(flat[i + 1])) do packed[#packed + 1] = { name, value } end
  else
    values[#values + 1], values[#values + 2] = flat[i], flat[i + 1]
  end
end
return { packed, values }`,
    1,
    key,
  );
  const [packed, values] = hashSchema.parse(answer);
  return { packed, values };
}

async function mentions(
  redis: Redis,
  key: string,
  type: string,
  names: (text: string) => boolean,
): Promise<boolean> {
  if (type === "hash")
    return Object.entries(await redis.hgetall(key))
      .flat()
      .some(names);
  if (type === "list") return (await redis.lrange(key, 0, -1)).some(names);
  if (type === "set") return (await redis.smembers(key)).some(names);
  return type === "string" && names((await redis.get(key)) ?? "");
}
