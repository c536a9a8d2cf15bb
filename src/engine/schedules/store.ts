/**
 * Stores schedules, outside the shards: they delegate to agents of all shards. Limit: a change names the `seq` that it
 * read, so of several changes at once one is made, and the others read again.
 */
import type { Clock } from "../../lifecycle/command.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import { engineTime, TIME_LUA } from "../../redis/time.ts";
import { LIMITS } from "../../schema/limits.ts";
import { type StoredRun, type StoredSchedule, storedRunSchema, toStoredSchedule } from "./stored-schedule.ts";

/** KEYS: the schedule · ARGV: clock offset · Returns the time and the fields. */
const readScript = new Script(`#!lua flags=no-writes
${TIME_LUA}
return { redis_ms() + ARGV[1], redis.call('HGETALL', KEYS[1]) }`);
const createScript = new Script(`#!lua
${readLua("./create.lua", import.meta.url)}`);
/** Also at full memory, so that a tick is never made without being counted. */
const exchangeScript = new Script(`#!lua flags=allow-oom
${readLua("./exchange.lua", import.meta.url)}`);
const deleteScript = new Script(`#!lua flags=allow-oom
${readLua("./delete.lua", import.meta.url)}`);

/** KEYS: due ones · ARGV: due at or before, until, ids · Those that are still due are due later. */
const postponeScript = new Script(`#!lua flags=allow-oom
for n = 3, #ARGV do
  local at = redis.call('ZSCORE', KEYS[1], ARGV[n])
  if at and tonumber(at) <= tonumber(ARGV[1]) then redis.call('ZADD', KEYS[1], ARGV[2], ARGV[n]) end
end
return 1`);

export interface ScheduleChange {
  readonly fields?: Readonly<Record<string, string | number>>;
  /** When it needs something next, ms; null: nothing is due. */
  readonly due: number | null;
  readonly run?: StoredRun | undefined;
}

export interface ScheduleAt {
  readonly schedule: StoredSchedule;
  /** By Redis' clock, ms. */
  readonly now: number;
}

export class ScheduleStore {
  readonly #redis: Redis;
  readonly #clock: Clock;

  constructor(redis: Redis, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  async find(id: string): Promise<ScheduleAt | null> {
    const found = await readScript.run(this.#redis, [keys.schedule(id)], [this.#clock.offset_ms]);
    const [now, fields] = Array.isArray(found) ? found : [];
    if (!Array.isArray(fields) || fields.length === 0) return null;
    const texts = fields.map(String);
    const pairs = texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? ""] as const] : []));
    return { schedule: toStoredSchedule(id, Object.fromEntries(pairs)), now: Number(now) };
  }

  /** By Redis' clock, ms. */
  async now(): Promise<number> {
    return engineTime(this.#redis, this.#clock);
  }

  /** `exists`: a schedule with this id was created before. */
  async create(
    id: string,
    owner: string,
    fields: Readonly<Record<string, string | number>>,
    { at, due }: { readonly at: number; readonly due: number | null },
  ): Promise<"created" | "exists" | "too_many"> {
    const made = await createScript.run(
      this.#redis,
      [keys.schedule(id), keys.schedules, keys.schedulesOf(owner), keys.schedulesDue],
      [id, at, due ?? "", LIMITS.schedules.value, ...Object.entries(fields).flat()],
    );
    return made === 1 ? "created" : made === 2 ? "exists" : "too_many";
  }

  /** False when it was changed or deleted since it was read. */
  async exchange({ id, seq }: StoredSchedule, { fields = {}, due, run }: ScheduleChange): Promise<boolean> {
    const changed = await exchangeScript.run(
      this.#redis,
      [keys.schedule(id), keys.schedulesDue, keys.scheduleRuns(id)],
      [
        id,
        seq,
        due ?? "",
        LIMITS.schedule_runs.value,
        run ? JSON.stringify(run) : "",
        ...Object.entries(fields).flat(),
      ],
    );
    return changed === 1;
  }

  /** False when there was none. */
  async delete(id: string, owner: string): Promise<boolean> {
    const deleted = await deleteScript.run(
      this.#redis,
      [keys.schedule(id), keys.schedules, keys.schedulesOf(owner), keys.schedulesDue, keys.scheduleRuns(id)],
      [id],
    );
    return deleted === 1;
  }

  /** Newest first. */
  async runs(id: string, count: number): Promise<StoredRun[]> {
    const texts = await this.#redis.lrange(keys.scheduleRuns(id), 0, count - 1);
    return texts.map((text) => storedRunSchema.parse(JSON.parse(text)));
  }

  /** Ids of schedules, oldest first: all, or those of a principal. At most one more than `limit`. */
  async ids(
    owner: string | null,
    after: { at: number; id: string } | null,
    limit: number,
  ): Promise<string[]> {
    const key = owner === null ? keys.schedules : keys.schedulesOf(owner);
    const ids: string[] = [];
    for (let offset = 0; ids.length <= limit; offset += 100) {
      const found = await this.#redis.zrange(
        key,
        after?.at ?? "-inf",
        "+inf",
        "BYSCORE",
        "LIMIT",
        offset,
        100,
        "WITHSCORES",
      );
      for (let at = 0; at < found.length; at += 2) {
        const id = found[at] ?? "";
        if (!after || Number(found[at + 1]) > after.at || id > after.id) ids.push(id);
      }
      if (found.length < 200) break;
    }
    return ids.slice(0, limit + 1);
  }

  /** Ids that need something now, longest waiting first, with when they became due; and whether any will. */
  async due(count: number): Promise<{ ids: { id: string; at: number }[]; any: boolean; now: number }> {
    const found = await this.#redis.zrange(keys.schedulesDue, "0", String(count - 1), "WITHSCORES");
    const now = await this.now();
    const all = found.flatMap((id, n) => (n % 2 === 0 ? [{ id, at: Number(found[n + 1]) }] : []));
    return { ids: all.filter(({ at }) => at <= now), any: all.length > 0, now };
  }

  /** Those of these that are still due at an instant are looked at again later. */
  async postpone(
    ids: readonly string[],
    { due, until }: { readonly due: number; readonly until: number },
  ): Promise<void> {
    if (ids.length > 0) await postponeScript.run(this.#redis, [keys.schedulesDue], [due, until, ...ids]);
  }
}
