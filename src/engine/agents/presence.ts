/**
 * Presence: when an agent was last seen, and how many polls are parked for it at all gateways. Limit: written at most once
 * a second for each active agent, so it lags by about that much; no decision depends on it.
 */

import type { Redis } from "../../redis/connect.ts";
import { keys, pausedField } from "../../redis/keys.ts";
import { writeEvenIfFull } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import type { WorkerPause } from "../../schema/lease.ts";
import type { Presence } from "../../schema/presence.ts";
import { toInstant } from "../../schema/values.ts";
import type { Log } from "../../telemetry/log.ts";
import { BoundedMap } from "../../util/bounded.ts";
import type { ParkedPolls } from "../leases/parked-polls.ts";
import { PausedWorkers, pausesIn, toPaused } from "./paused-workers.ts";
import { SeenWorkers } from "./seen-workers.ts";

const FLUSH_MS = 1_000;
const BEAT_MS = 5_000;
/** Without a heartbeat for this time, a gateway and its parked polls no longer count. */
const GATEWAY_TTL_MS = 15_000;
const ONLINE_MS = 30_000;
const STALE_MS = 600_000;
const CACHE_MS = 200;
const CACHE_MAX = 10_000;

export class PresenceTracker {
  readonly #redis: Redis;
  readonly #shards: Shards;
  readonly #polls: Pick<ParkedPolls, "count">;
  readonly #gateway: string;
  readonly #log: Log;
  readonly #isPushed: (agent: string) => boolean;
  readonly #dirty = new Set<string>();
  /** What the last flush wrote: a reader may have read Redis before that. */
  #flushed: ReadonlySet<string> = new Set();
  readonly #workers = new SeenWorkers();
  readonly #paused = new PausedWorkers();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #cache = new BoundedMap<string, { presence: Promise<Presence>; until: number }>(CACHE_MAX);
  #gateways: { names: string[]; until: number } = { names: [], until: 0 };

  constructor(
    redis: Redis,
    shards: Shards,
    polls: Pick<ParkedPolls, "count">,
    gateway: string,
    log: Log,
    isPushed: (agent: string) => boolean,
  ) {
    this.#isPushed = isPushed;
    this.#redis = redis;
    this.#shards = shards;
    this.#polls = polls;
    this.#gateway = gateway;
    this.#log = log;
  }

  async start(): Promise<void> {
    await this.#beat();
    this.#every(FLUSH_MS, () => this.#flush());
    this.#every(BEAT_MS, () => this.#beat());
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.withdraw(this.#gateway);
  }

  /** Call it for a gateway that is known to be dead; otherwise its polls count for some seconds more. */
  async withdraw(gateway: string): Promise<void> {
    await Promise.all([this.#redis.zrem(keys.gateways, gateway), this.#redis.del(keys.pollers(gateway))]);
  }

  /** Call it when the agent polled, ended a poll, or used a lease; only a poll names its worker. */
  seen(agent: string, worker_id?: string): void {
    this.#dirty.add(agent);
    if (worker_id !== undefined) this.#workers.add(agent, worker_id);
  }

  /** Call it when a worker says that it pauses. */
  paused(agent: string, worker: WorkerPause): void {
    this.#paused.add(agent, worker);
    this.#dirty.add(agent);
  }

  async of(agent: string): Promise<Presence> {
    if (this.#isPushed(agent)) return this.#ofPushed(agent);
    const others = (await this.#others()).map((gateway) => this.#redis.hget(keys.pollers(gateway), agent));
    const [[lastSeen, paused] = [], ...counts] = await Promise.all([
      this.#redis.hmget(this.#shards.ofAgent(agent).seen, agent, pausedField(agent)),
      ...others,
    ]);
    const pollers = counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
    return this.#toPolled(agent, Number(lastSeen ?? 0), pollers, paused);
  }

  /** The presence of many agents, with one command for each other gateway. The caller passes what it read of them. */
  async ofAll(
    bulk: Redis,
    agents: readonly {
      readonly name: string;
      readonly seen: number | null;
      readonly unreached: number | null;
      /** The pauses of its workers, as they are stored. */
      readonly paused: string;
    }[],
  ): Promise<Presence[]> {
    if (agents.length === 0) return [];
    const names = agents.map(({ name }) => name);
    const others = await Promise.all(
      (await this.#others()).map((gateway) => bulk.hmget(keys.pollers(gateway), ...names)),
    );
    return agents.map(({ name, seen, unreached, paused }, index) => {
      if (this.#isPushed(name)) return toPushed(seen, unreached, paused);
      const pollers = others.reduce((sum, counts) => sum + Number(counts[index] ?? 0), 0);
      return this.#toPolled(name, seen ?? 0, pollers, paused);
    });
  }

  #toPolled(agent: string, lastSeen: number, elsewhere: number, stored: string | null | undefined): Presence {
    const pollers = elsewhere + this.#polls.count(agent);
    const at = this.#dirty.has(agent) || this.#flushed.has(agent) ? Date.now() : lastSeen;
    const age = Date.now() - at;
    const state = pollers > 0 || age < ONLINE_MS ? "online" : age < STALE_MS ? "stale" : "offline";
    const paused = toPaused(pausesIn(stored));
    return { state, last_seen_at: at > 0 ? toInstant(at) : null, pollers, ...(paused && { paused }) };
  }

  /** A push agent is online unless its server could not be reached at the last call. */
  async #ofPushed(agent: string): Promise<Presence> {
    const { seen, unreached } = this.#shards.ofAgent(agent);
    const [[lastSeen, paused], since] = await Promise.all([
      this.#redis.hmget(seen, agent, pausedField(agent)),
      this.#redis.hget(unreached, agent),
    ]);
    return toPushed(Number(lastSeen ?? 0), since === null ? null : Number(since), paused);
  }

  /** At most {@link CACHE_MS} old, and `offline` when Redis does not answer; for a response about something else. */
  cached(agent: string): Promise<Presence> {
    const now = Date.now();
    const known = this.#cache.get(agent);
    if (known && known.until > now) return known.presence;
    const presence = this.of(agent).catch(
      (): Presence => ({ state: "offline", last_seen_at: null, pollers: 0 }),
    );
    this.#cache.set(agent, { presence, until: now + CACHE_MS });
    return presence;
  }

  async #others(): Promise<string[]> {
    const now = Date.now();
    if (this.#gateways.until <= now) {
      const names = await this.#redis.zrangebyscore(keys.gateways, now - GATEWAY_TTL_MS, "+inf");
      this.#gateways = { names: names.filter((name) => name !== this.#gateway), until: now + FLUSH_MS };
    }
    return this.#gateways.names;
  }

  #every(ms: number, work: () => Promise<void>): void {
    const run = () =>
      void work().catch((error: unknown) =>
        this.#log.debug({ err: error instanceof Error ? error.message : "unknown" }, "presence not written"),
      );
    this.#timers.push(setInterval(run, ms).unref());
  }

  async #flush(): Promise<void> {
    this.#flushed = new Set(this.#dirty);
    if (this.#dirty.size === 0) return;
    const names = [...this.#dirty];
    this.#dirty.clear();
    const now = Date.now();
    const seen = new Map<string, Record<string, number>>();
    const pollers: Record<string, number> = {};
    for (const name of names) {
      const key = this.#shards.ofAgent(name).seen;
      const fields = seen.get(key) ?? {};
      fields[name] = now;
      seen.set(key, fields);
      pollers[name] = this.#polls.count(name);
    }
    await Promise.all([
      ...[...seen].map(([key, fields]) => this.#set(key, fields)),
      this.#set(keys.pollers(this.#gateway), pollers),
      this.#redis.pexpire(keys.pollers(this.#gateway), GATEWAY_TTL_MS),
      this.#workers.write(this.#redis, this.#shards),
      this.#paused.write(this.#redis, this.#shards),
    ]);
  }

  #set(key: string, fields: Readonly<Record<string, number>>): Promise<void> {
    return writeEvenIfFull(this.#redis, "HSET", key, ...Object.entries(fields).flat());
  }

  async #beat(): Promise<void> {
    const now = Date.now();
    await writeEvenIfFull(this.#redis, "ZADD", keys.gateways, now, this.#gateway);
    await this.#redis.zremrangebyscore(keys.gateways, "-inf", now - GATEWAY_TTL_MS * 4);
    await this.#redis.pexpire(keys.pollers(this.#gateway), GATEWAY_TTL_MS);
  }
}

function toPushed(
  lastSeen: number | null,
  unreachedSince: number | null,
  stored: string | null | undefined,
): Presence {
  const at = unreachedSince ?? lastSeen ?? 0;
  const state = unreachedSince === null ? "online" : Date.now() - at < STALE_MS ? "stale" : "offline";
  const paused = toPaused(pausesIn(stored));
  return { state, last_seen_at: at > 0 ? toInstant(at) : null, pollers: 0, ...(paused && { paused }) };
}
