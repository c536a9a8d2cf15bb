/**
 * Agents as they are stored: one hash each, the document and the numbers that the script needs.
 * Limit: look-ups are cached for a second, so a change takes that long to reach the other gateways.
 */
import { agentNumbers } from "../lifecycle/script.ts";
import type { Clock } from "../lifecycle/writer.ts";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";
import type { Shards } from "../redis/shards.ts";
import { type AgentSpec, agentRequestSchema } from "../schema/agent.ts";
import { ErrandError } from "../schema/errors.ts";

export interface StoredAgent {
  readonly name: string;
  readonly spec: AgentSpec;
  readonly paused: boolean;
  readonly created_at: number;
  readonly updated_at: number;
}

export interface Counts {
  readonly waiting: number;
  readonly delayed: number;
  readonly working: number;
  readonly interrupted: number;
}

const CACHE_MS = 1_000;
const CACHE_MAX = 10_000;

/** KEYS: agent, names, seen, then the live sets · ARGV: name, force · 1 when it is gone, 0 when it is busy. */
const removeScript = new Script(`#!lua
if ARGV[2] ~= '1' then
  for i = 4, #KEYS do if redis.call('ZCARD', KEYS[i]) > 0 then return 0 end end
end
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1`);

const LIVE = ["submitted", "working", "interrupted"] as const;

export class Agents {
  readonly #redis: Redis;
  readonly #shards: Shards;
  readonly #clock: Clock;
  readonly #cache = new Map<string, { agent: StoredAgent | null; until: number }>();

  constructor(redis: Redis, shards: Shards, clock: Clock) {
    this.#redis = redis;
    this.#shards = shards;
    this.#clock = clock;
  }

  /** Null when there is no such agent. */
  async find(name: string): Promise<StoredAgent | null> {
    const now = Date.now();
    const cached = this.#cache.get(name);
    if (cached && cached.until > now) return cached.agent;
    const fields = await this.#redis.hgetall(this.#shards.ofAgent(name).agent(name));
    const agent: StoredAgent | null =
      fields.doc === undefined
        ? null
        : {
            name,
            spec: agentRequestSchema.parse(JSON.parse(fields.doc)),
            paused: fields.paused === "1",
            created_at: Number(fields.created_at),
            updated_at: Number(fields.updated_at),
          };
    if (this.#cache.size >= CACHE_MAX) this.#cache.clear();
    this.#cache.set(name, { agent, until: now + CACHE_MS });
    return agent;
  }

  async get(name: string): Promise<StoredAgent> {
    const agent = await this.find(name);
    if (!agent) throw new ErrandError("agent_unknown", `There is no agent '${name}'.`);
    return agent;
  }

  async put(name: string, spec: AgentSpec): Promise<{ created: boolean }> {
    const keys = this.#shards.ofAgent(name);
    const now = Date.now() + this.#clock.offset_ms;
    const numbers = Object.entries(agentNumbers(spec)).map(([key, value]) => [key, value ?? ""] as const);
    const created = await this.#redis.hsetnx(keys.agent(name), "created_at", now);
    await this.#redis.hset(keys.agent(name), {
      doc: JSON.stringify(spec),
      updated_at: now,
      ...Object.fromEntries(numbers),
    });
    await this.#redis.sadd(keys.agents, name);
    this.#cache.delete(name);
    return { created: created === 1 };
  }

  async setPaused(name: string, paused: boolean): Promise<void> {
    await this.#redis.hset(this.#shards.ofAgent(name).agent(name), "paused", paused ? 1 : 0);
    this.#cache.delete(name);
  }

  /** All names, sorted. */
  async names(): Promise<string[]> {
    const sets = await Promise.all(this.#shards.all.map((keys) => this.#redis.smembers(keys.agents)));
    return sets.flat().sort();
  }

  async counts(name: string): Promise<Counts> {
    const keys = this.#shards.ofAgent(name);
    const now = Date.now() + this.#clock.offset_ms;
    const [waiting, submitted, working, interrupted] = await Promise.all([
      this.#redis.zcount(keys.live(name, "submitted"), "-inf", now),
      this.#redis.zcard(keys.live(name, "submitted")),
      this.#redis.zcard(keys.live(name, "working")),
      this.#redis.zcard(keys.live(name, "interrupted")),
    ]);
    return { waiting, delayed: submitted - waiting, working, interrupted };
  }

  /** Whether it is to be handed nothing now: paused, or at its max_working. */
  async isHeld(name: string): Promise<boolean> {
    const keys = this.#shards.ofAgent(name);
    const [[paused, cap], working] = await Promise.all([
      this.#redis.hmget(keys.agent(name), "paused", "max_working"),
      this.#redis.zcard(keys.live(name, "working")),
    ]);
    return paused === "1" || (!!cap && working >= Number(cap));
  }

  /** Takes the agent away, unless it has live delegations and `force` is off; false when it is busy. */
  async remove(name: string, force: boolean): Promise<boolean> {
    const keys = this.#shards.ofAgent(name);
    const live = LIVE.map((state) => keys.live(name, state));
    const gone = await removeScript.run(
      this.#redis,
      [keys.agent(name), keys.agents, keys.seen, ...live],
      [name, force ? 1 : 0],
    );
    this.#cache.delete(name);
    return gone === 1;
  }

  /** Ids of live delegations, some of each state; empty when there are none left. */
  async live(name: string): Promise<string[]> {
    const keys = this.#shards.ofAgent(name);
    const sets = await Promise.all(
      LIVE.map((state) => this.#redis.zrange(keys.live(name, state), "0", "99")),
    );
    return sets.flat();
  }

  /** What a deleted agent leaves behind, so that a new one of its name sees nothing of it. */
  async forget(name: string): Promise<void> {
    await Promise.all(this.#shards.all.map((keys) => this.#redis.del(keys.feed(`agent:${name}`))));
  }
}
