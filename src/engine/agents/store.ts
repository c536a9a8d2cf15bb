/**
 * Stores agents: one hash each, with the settings and the numbers that the script needs.
 * Limit: look-ups are cached, and a change takes up to a second to reach the other gateways.
 */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../lifecycle/command.ts";
import { agentNumbers } from "../../lifecycle/numbers.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys as common, pausedField } from "../../redis/keys.ts";
import { newMark, readMarkedHash } from "../../redis/marked-read.ts";
import { NO_REPLICAS, type Replicas } from "../../redis/replicas.ts";
import { readLua, Script, writeEvenIfFull } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import { TIME_LUA } from "../../redis/time.ts";
import type { AgentSpec, Delivery } from "../../schema/agent.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import { LastMark, type Marked, MarkedCache } from "../../util/marked-cache.ts";
import { type Conditions, isConditional, requireConditions } from "./conditions.ts";
import { type CredentialFields, DeliveryCredentials, sameCredentials } from "./delivery-credentials.ts";
import { type Counts, docOf, type Settings, type StoredAgent, tagOf, toStored } from "./stored-agent.ts";

/** For the agents of all shards; sizes are those of the JSON text. */
const CACHE_BYTES = 16 * 1024 * 1024;
/** What a cached agent takes besides its settings. */
const CACHED_BYTES = 500;
/** Longer than a delegation of a deleted agent can live. */
const DELETED_MS = 400 * 86_400_000;
const MAX_DELETED = 100_000;

const putScript = new Script(`#!lua flags=allow-oom
${TIME_LUA}
${readLua("./put.lua", import.meta.url)}`);

/** Returns -1 if the agent does not have the tag of an argument; '' is for any. */
const requireTag = (argument: string) => `
if ${argument} ~= '' then
  local stored = redis.call('HMGET', KEYS[1], 'created_at', 'version')
  if ${argument} ~= (stored[1] and stored[1] .. '-' .. (stored[2] or '0') or '') then return -1 end
end`;

/**
 * KEYS: agent, mark of the agents · ARGV: 1 for paused, a new mark, tag · Writes only to an agent that exists, and only a
 * change.
 */
const pauseScript = new Script(`#!lua flags=allow-oom${requireTag("ARGV[3]")}
local paused = redis.call('HMGET', KEYS[1], 'created_at', 'paused')
if not paused[1] or (paused[2] or '0') == ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'paused', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('SET', KEYS[2], ARGV[2])
return 1`);

/**
 * KEYS: agent, mark of the agents, then the live sets · ARGV: force, a new mark, tag · Returns 1 when its deletion has
 * begun, 0 when it is busy.
 */
const closeScript = new Script(`#!lua flags=allow-oom${requireTag("ARGV[3]")}
if ARGV[1] ~= '1' and not redis.call('HGET', KEYS[1], 'deleting') then
  for i = 3, #KEYS do if redis.call('ZCARD', KEYS[i]) > 0 then return 0 end end
end
redis.call('HSET', KEYS[1], 'deleting', 1)
redis.call('SET', KEYS[2], ARGV[2])
return 1`);

/** KEYS: agent, mark of the agents · ARGV: a new mark */
const deleteScript = new Script(`#!lua flags=allow-oom
redis.call('SET', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])`);

/** An agent with its credentials. They are not in StoredAgent, which may be shown. */
interface CachedAgent {
  readonly agent: StoredAgent;
  readonly credentials: DeliveryCredentials | null;
  readonly bytes: number;
}

/** In every round, the change of at least one caller succeeds. */
const MAX_ROUNDS = 100;

/** KEYS: names of deleted agents · ARGV: name, clock offset, how long names are kept (ms), how many at most. */
const deletedScript = new Script(`#!lua flags=allow-oom
${TIME_LUA}
local now = redis_ms() + ARGV[2]
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[4])
return 1`);

const beingDeleted = (name: string): ErrandError =>
  new ErrandError("agent_busy", `Agent '${name}' is being deleted.`, {
    recovery: "Delete the agent again to finish the deletion, then retry.",
  });

const tooManyChanges = (name: string): ErrandError =>
  new ErrandError("overloaded", `Agent '${name}' is being changed by too many callers at once.`, {
    retry_after_seconds: 1,
  });

/** The weight of each delegator is a field, so that the script reads only one. */
const weightFields = (weights: AgentSpec["delegator_weights"]): Record<string, number> =>
  Object.fromEntries(Object.entries(weights).map(([principal, weight]) => [`weight:${principal}`, weight]));

/** The fields of weights that a change removes, unless it sets them again. */
const withoutWeights = (before: AgentSpec | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.keys(before?.delegator_weights ?? {}).map((principal) => [`weight:${principal}`, ""]),
  );

/** Written for an agent without credentials, to overwrite stored ones. */
const NO_CREDENTIALS: CredentialFields = { credentials: "", credentials_for: "" };

const LIVE = ["submitted", "working", "interrupted", "awaiting_children"] as const;

export interface AgentStoreOptions {
  readonly redis: Redis;
  readonly shards: Shards;
  readonly clock: Clock;
  /** How long finished delegations are kept. */
  readonly retentionMs: number;
  /** Default: no replica must have a change before it is acknowledged. */
  readonly replicas?: Replicas;
}

export class AgentStore {
  readonly #redis: Redis;
  readonly #shards: Shards;
  readonly #clock: Clock;
  readonly #retention_ms: number;
  readonly #replicas: Replicas;
  /** By shard. */
  readonly #marks: readonly LastMark[];
  readonly #cache = new MarkedCache<CachedAgent>({
    maxBytes: CACHE_BYTES,
    bytesOf: ({ bytes }) => CACHED_BYTES + bytes,
  });

  constructor(options: AgentStoreOptions) {
    const { redis, shards } = options;
    this.#redis = redis;
    this.#shards = shards;
    this.#clock = options.clock;
    this.#retention_ms = options.retentionMs;
    this.#replicas = options.replicas ?? NO_REPLICAS;
    this.#marks = shards.all.map(({ agentsMark }) => new LastMark(() => redis.get(agentsMark)));
  }

  /** Null when there is no such agent. */
  async find(name: string): Promise<StoredAgent | null> {
    return (await this.#find(name))?.agent ?? null;
  }

  /**
   * The credentials for the A2A server of `delivery`, which the caller has read; null if the agent has another server
   * by now.
   */
  async credentialsOf(name: string, delivery: Delivery): Promise<DeliveryCredentials | null> {
    const credentials = (await this.#find(name))?.credentials;
    return credentials?.areFor(delivery) ? credentials : null;
  }

  /** Reads it from Redis, not from the cache. */
  async read(name: string): Promise<StoredAgent | null> {
    return (await this.#read(name))?.agent ?? null;
  }

  #find(name: string): Promise<CachedAgent | null> {
    const mark = this.#marks[this.#shards.indexOfAgent(name)];
    if (!mark) throw new RangeError(`agent ${name} has no shard`);
    return this.#cache.find(name, mark, () => this.#load(name));
  }

  /** Reads from Redis, and caches. With `toChange`, throws `agent_busy` if the agent is being deleted. */
  #read(name: string, toChange = false): Promise<CachedAgent | null> {
    return this.#cache.reload(name, () => this.#load(name, toChange));
  }

  async #load(name: string, toChange = false): Promise<Marked<CachedAgent>> {
    const keys = this.#shards.ofAgent(name);
    const { fields, mark } = await readMarkedHash(this.#redis, keys.agent(name), keys.agentsMark);
    if (toChange && fields.deleting !== undefined) throw beingDeleted(name);
    if (fields.doc === undefined) return { value: null, mark };
    const agent = toStored(name, { ...fields, doc: fields.doc });
    const credentials = agent.credentials_set ? DeliveryCredentials.read(fields) : null;
    return { value: { agent, credentials, bytes: fields.doc.length }, mark };
  }

  /** Waits until the required replicas have the change, so that a fail-over cannot undo it. */
  #confirm(name: string): Promise<void> {
    return this.#replicas.confirm(this.#shards.ofAgent(name).replicated);
  }

  async get(name: string): Promise<StoredAgent> {
    const agent = await this.find(name);
    if (!agent) throw new ErrandError("agent_unknown", `There is no agent '${name}'.`);
    return agent;
  }

  /** Creates the agent, or replaces its settings. */
  async put(name: string, spec: AgentSpec): Promise<void> {
    await this.change(name, () => ({ spec, credentials: null }));
  }

  /**
   * Writes the settings that `next` returns for the current ones; concurrent changes are applied in turn, none is lost.
   * Returns the agent before, null when there was none. Nothing is written when nothing differs.
   */
  async change(
    name: string,
    next: (before: StoredAgent | null, credentials: DeliveryCredentials | null) => Settings,
  ): Promise<StoredAgent | null> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const known = await this.#read(name, true);
      const before = known?.agent ?? null;
      const settings = next(before, known?.credentials ?? null);
      const isSame =
        known !== null &&
        isDeepStrictEqual(known.agent.spec, settings.spec) &&
        sameCredentials(known.credentials, settings.credentials);
      if (!isSame && !(await this.#write(name, settings, before))) continue;
      await this.#confirm(name);
      return before;
    }
    throw tooManyChanges(name);
  }

  /** False when the agent was changed since `before`. */
  async #write(name: string, { spec, credentials }: Settings, before: StoredAgent | null): Promise<boolean> {
    const keys = this.#shards.ofAgent(name);
    const secret = credentials?.toFields() ?? NO_CREDENTIALS;
    const weights = { ...withoutWeights(before?.spec), ...weightFields(spec.delegator_weights) };
    const fields = Object.entries({ ...agentNumbers(spec), ...weights, ...secret }).flatMap(
      ([key, value]) => [key, value ?? ""],
    );
    const written = await putScript.run(
      this.#redis,
      [keys.agent(name), keys.agents, keys.pushAgents, keys.agentNames, keys.agentsMark],
      [
        name,
        this.#clock.offset_ms,
        spec.delivery.mode === "push" ? 1 : 0,
        before ? tagOf(before) : "",
        LIMITS.agents.value,
        newMark(),
        "doc",
        docOf(spec),
        ...fields,
      ],
    );
    this.#cache.delete(name);
    if (written === -1) throw beingDeleted(name);
    if (written === -2) {
      const maximum = LIMITS.agents.value;
      throw new ErrandError(
        "limit_reached",
        `The shard of agent '${name}' has too many agents; the limit is ${maximum}.`,
        {
          details: { limit: "agents", maximum },
          recovery: "Delete agents that are no longer used.",
        },
      );
    }
    return written === 1;
  }

  /**
   * Runs a change with the tag that the agent must still have, '' without conditions, until it does not return null: the
   * agent changed meanwhile. Throws `precondition_failed` when the agent does not meet the conditions.
   */
  async whileUnchanged<T>(
    name: string,
    conditions: Conditions,
    change: (tag: string) => Promise<T | null>,
  ): Promise<T> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const current = isConditional(conditions) ? await this.read(name) : null;
      requireConditions(name, current, conditions);
      const result = await change(current ? tagOf(current) : "");
      if (result !== null) return result;
    }
    throw tooManyChanges(name);
  }

  /** Null if it does not have the tag; '' is for any. */
  async setPaused(name: string, paused: boolean, tag = ""): Promise<true | null> {
    const { agent, agentsMark } = this.#shards.ofAgent(name);
    const args = [paused ? 1 : 0, newMark(), tag];
    const written = await pauseScript.run(this.#redis, [agent(name), agentsMark], args);
    this.#cache.delete(name);
    if (written === -1) return null;
    await this.#confirm(name);
    return true;
  }

  /** The names of all push agents. */
  async pushAgents(): Promise<string[]> {
    const sets = await Promise.all(this.#shards.all.map((keys) => this.#redis.smembers(keys.pushAgents)));
    return sets.flat();
  }

  /** Stores the time, ms, since which a push agent's server cannot be reached; null: it can be reached. */
  async setUnreached(name: string, at: number | null): Promise<void> {
    const key = this.#shards.ofAgent(name).unreached;
    if (at === null) await this.#redis.hdel(key, name);
    else await writeEvenIfFull(this.#redis, "HSETNX", key, name, at);
  }

  async counts(name: string): Promise<Counts> {
    const keys = this.#shards.ofAgent(name);
    const now = Date.now() + this.#clock.offset_ms;
    const [waiting, submitted, working, interrupted, awaiting] = await Promise.all([
      this.#redis.zcount(keys.live(name, "submitted"), "-inf", now),
      this.#redis.zcard(keys.live(name, "submitted")),
      this.#redis.zcard(keys.live(name, "working")),
      this.#redis.zcard(keys.live(name, "interrupted")),
      this.#redis.zcard(keys.live(name, "awaiting_children")),
    ]);
    return { waiting, delayed: submitted - waiting, working, interrupted, awaiting };
  }

  /** When its next work becomes or became ready, ms; null when none is queued. */
  async oldestAt(name: string): Promise<number | null> {
    const [, at] = await this.#redis.zrange(
      this.#shards.ofAgent(name).live(name, "submitted"),
      "0",
      "0",
      "WITHSCORES",
    );
    return at === undefined ? null : Number(at);
  }

  /**
   * From now on the agent accepts and gets no work. Returns false when it has live delegations and `force` is off, null
   * when it does not have the tag ('' is for any). The steps up to {@link finishDeletion} may be repeated.
   */
  async beginDeletion(name: string, force: boolean, tag = ""): Promise<boolean | null> {
    const keys = this.#shards.ofAgent(name);
    const live = LIVE.map((state) => keys.live(name, state));
    const closed = await closeScript.run(
      this.#redis,
      [keys.agent(name), keys.agentsMark, ...live],
      [force ? 1 : 0, newMark(), tag],
    );
    this.#cache.delete(name);
    if (closed === -1) return null;
    await this.#confirm(name);
    return closed === 1;
  }

  /** Ids of live delegations, up to 100 of each state; empty when none is left. */
  async liveDelegations(name: string): Promise<string[]> {
    const keys = this.#shards.ofAgent(name);
    const sets = await Promise.all(
      LIVE.map((state) => this.#redis.zrange(keys.live(name, state), "0", "99")),
    );
    return sets.flat();
  }

  /** Deletes what is left, the agent itself last, so that a new agent of the same name sees nothing of it. */
  async finishDeletion(name: string): Promise<void> {
    const keys = this.#shards.ofAgent(name);
    await Promise.all(
      this.#shards.all.map(async (shard) => {
        const feed = shard.feed(`agent:${name}`);
        await this.#redis.del(feed);
        await this.#redis.hdel(shard.erased, feed, `${feed}:whole`);
      }),
    );
    await deletedScript.run(
      this.#redis,
      [common.deleted],
      [name, this.#clock.offset_ms, Math.max(DELETED_MS, this.#retention_ms), MAX_DELETED],
    );
    await this.#redis.hdel(keys.seen, name, pausedField(name));
    await this.#redis.hdel(keys.unreached, name);
    await this.#redis.srem(keys.pushAgents, name);
    await this.#redis.del(keys.workers(name));
    await this.#redis.zrem(keys.agentNames, name);
    await this.#redis.srem(keys.agents, name);
    await deleteScript.run(this.#redis, [keys.agent(name), keys.agentsMark], [newMark()]);
    this.#cache.delete(name);
    await Promise.all([this.#confirm(name), this.#replicas.confirm(common.replicated)]);
  }

  /** When the last agent of this name was deleted, ms; null: none was. */
  async deletedAt(name: string): Promise<number | null> {
    const at = await this.#redis.zscore(common.deleted, name);
    return at === null ? null : Number(at);
  }

  /**
   * An agent of this name sees only delegations that were created at this time or later, ms: when the agent was created
   * or, without an agent, when the last one was deleted.
   */
  async since(name: string): Promise<number> {
    const agent = await this.find(name);
    if (agent) return agent.created_at;
    return (await this.deletedAt(name)) ?? 0;
  }
}
