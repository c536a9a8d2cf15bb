/**
 * Stores rules, in the shards of their agents, so that the script that answers checks them in the same step. Limit: a rule
 * never changes; to change one, revoke it and create another.
 */
import * as z from "zod";
import type { Clock } from "../../lifecycle/command.ts";
import type { Redis } from "../../redis/connect.ts";
import type { ShardKeys } from "../../redis/keys.ts";
import { NO_REPLICAS, type Replicas } from "../../redis/replicas.ts";
import { readLua, Script } from "../../redis/script.ts";
import type { Shards } from "../../redis/shards.ts";
import { TIME_LUA } from "../../redis/time.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { CreatedAt } from "../list-cursor.ts";
import { ALL, type StoredRule, toRules } from "./stored-rule.ts";

const KEPT_MS = LIMITS.rule_days.value * 86_400_000;

/** KEYS: hashes · ARGV: clock offset · Returns the time, and the fields of each. */
const readScript = new Script(`#!lua flags=no-writes,allow-oom
${TIME_LUA}
local read = { redis_ms() + ARGV[1] }
for n, key in ipairs(KEYS) do read[n + 1] = redis.call('HGETALL', key) end
return read`);
const readSchema = z.tuple([z.number()]).rest(z.array(z.string()));

const RULES_LUA = `${TIME_LUA}
${readLua("./rules.lua", import.meta.url)}`;
const createScript = new Script(`#!lua
${RULES_LUA}
${readLua("./create.lua", import.meta.url)}`);
/** KEYS: hash · ARGV: clock offset, id · Returns 1 when this revoked it, 2 when it was revoked before, 0 when there is none. */
const revokeScript = new Script(`#!lua flags=allow-oom
${TIME_LUA}
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
if redis.call('HSETNX', KEYS[1], ARGV[2] .. ':revoked', string.format('%.0f', redis_ms() + ARGV[1])) == 1 then
  redis.call('HINCRBY', KEYS[1], 'version', 1)
  return 1
end
return 2`);
/** KEYS: places · ARGV: base, id */
const dropScript = new Script(`#!lua flags=allow-oom
${RULES_LUA}
return drop_rule(ARGV[1], ARGV[2])`);

export interface NewRule {
  readonly id: string;
  readonly doc: StoredRule["doc"];
  readonly scope: string;
  readonly expires_at: number | null;
  readonly for_ms: number | null;
  readonly max_uses: number | null;
}

/** The rules that may answer a question, and the versions that they were read at; see rules.lua. */
export interface RulesAt {
  readonly now: number;
  readonly rules: readonly StoredRule[];
  readonly seen: readonly [all: string, own: string];
  /** False: there never were rules, or all were dropped. */
  readonly any: boolean;
}

export interface RuleAt {
  readonly rule: StoredRule;
  readonly now: number;
}

export class RuleStore {
  readonly #redis: Redis;
  readonly #shards: Shards;
  readonly #clock: Clock;
  readonly #replicas: Replicas;

  constructor(redis: Redis, shards: Shards, clock: Clock, replicas: Replicas = NO_REPLICAS) {
    this.#redis = redis;
    this.#shards = shards;
    this.#clock = clock;
    this.#replicas = replicas;
  }

  /** Those for a delegation, in one command. */
  async for(agent: string, delegator: string): Promise<RulesAt> {
    const shard = this.#shards.ofAgent(agent);
    const [now, fields] = await this.#read([shard.rules(agent, ALL), shard.rules(agent, delegator)]);
    const [all = NOTHING, own = NOTHING] = fields;
    return {
      now,
      rules: [...toRules(ALL, all), ...toRules(delegator, own)],
      seen: [all.get("version") ?? "", own.get("version") ?? ""],
      any: all.size + own.size > 0,
    };
  }

  async create({ id, doc, scope, expires_at, for_ms, max_uses }: NewRule) {
    const shard = this.#shards.ofAgent(doc.agent);
    const { by, token, agent } = doc;
    const ends = [expires_at ?? "", for_ms ?? "", max_uses ?? ""];
    const most = [LIMITS.rules.value, LIMITS.agent_rules.value, KEPT_MS];
    const made = await createScript.run(
      this.#redis,
      [shard.rules(agent, scope), shard.agent(agent)],
      [
        ...[shard.base, this.#clock.offset_ms, id, JSON.stringify(doc), agent, scope, by, token],
        ...ends,
        ...most,
      ],
    );
    await this.#replicas.confirm(shard.replicated);
    return z.literal([1, 2, 0, -1, -2, -3]).parse(made);
  }

  async find(id: string): Promise<RuleAt | null> {
    const [found] = await this.#findAll([id]);
    return found ?? null;
  }

  /** Resolves once no gateway answers by the rule. `before`: it was revoked already, or there is none. */
  async revoke({ id, scope, doc }: Pick<StoredRule, "id" | "scope" | "doc">): Promise<"revoked" | "before"> {
    const shard = this.#shards.ofAgent(doc.agent);
    const done = await revokeScript.run(
      this.#redis,
      [shard.rules(doc.agent, scope)],
      [this.#clock.offset_ms, id],
    );
    await this.#replicas.confirm(shard.replicated);
    return done === 1 ? "revoked" : "before";
  }

  /** Revokes every rule that was created with the token. */
  async revokeOfToken(token: string): Promise<void> {
    for (const { rule } of await this.#inList(`token:${token}`)) await this.revoke(rule);
  }

  /** Deletes the rules for an agent that is deleted, and those that it created. */
  async dropOfAgent(agent: string): Promise<void> {
    for (const shard of this.#shards.all) {
      for (const index of [`for:${agent}`, `by:agent:${agent}`]) {
        for (const id of await this.#redis.zrange(shard.ruleList(index), "0", "-1"))
          await dropScript.run(this.#redis, [shard.rulePlaces], [shard.base, id]);
      }
    }
  }

  /** A page of a list, oldest first, and the position of its last rule if there are more. */
  async list(
    index: string,
    after: CreatedAt | null,
    limit: number,
  ): Promise<{ readonly rules: readonly RuleAt[]; readonly next: CreatedAt | null }> {
    const found = await Promise.all(
      this.#shards.all.map((shard) => this.#idsAfter(shard, index, after, limit)),
    );
    const places = found.flat().sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
    const page = places.slice(0, limit);
    const rules = await this.#findAll(page.map(({ id }) => id));
    return { rules, next: places.length > limit ? (page.at(-1) ?? null) : null };
  }

  async #idsAfter(
    shard: ShardKeys,
    index: string,
    after: CreatedAt | null,
    limit: number,
  ): Promise<CreatedAt[]> {
    const ids: CreatedAt[] = [];
    for (let offset = 0; ids.length <= limit; offset += 100) {
      const from = after?.at ?? "-inf";
      const key = shard.ruleList(index);
      const some = await this.#redis.zrange(key, from, "+inf", "BYSCORE", "LIMIT", offset, 100, "WITHSCORES");
      for (let n = 0; n < some.length; n += 2) {
        const one = { id: some[n] ?? "", at: Number(some[n + 1]) };
        if (!after || one.at > after.at || one.id > after.id) ids.push(one);
      }
      if (some.length < 200) break;
    }
    return ids.slice(0, limit + 1);
  }

  async #inList(index: string): Promise<RuleAt[]> {
    const ids = await Promise.all(
      this.#shards.all.map((shard) => this.#redis.zrange(shard.ruleList(index), "0", "-1")),
    );
    return this.#findAll(ids.flat());
  }

  /** In the order of the ids; those that are gone are left out. */
  async #findAll(ids: readonly string[]): Promise<RuleAt[]> {
    if (ids.length === 0) return [];
    const places = await Promise.all(
      this.#shards.all.map((shard) => this.#redis.hmget(shard.rulePlaces, ...ids)),
    );
    const found = await Promise.all(
      ids.map(async (id, n): Promise<RuleAt | null> => {
        const at = places.findIndex((some) => (some[n] ?? null) !== null);
        const [agent = "", scope = ""] = (places[at]?.[n] ?? "").split(" ");
        if (agent === "") return null;
        const [now, [fields = NOTHING]] = await this.#readOne(this.#shards.at(at).rules(agent, scope), id);
        const [rule] = toRules(scope, fields);
        return rule ? { rule, now } : null;
      }),
    );
    return found.flatMap((one) => one ?? []);
  }

  async #readOne(key: string, id: string) {
    return this.#read([key], id);
  }

  async #read(keys: readonly string[], id?: string): Promise<readonly [number, Map<string, string>[]]> {
    const [now, ...hashes] =
      id === undefined
        ? readSchema.parse(await readScript.run(this.#redis, keys, [this.#clock.offset_ms]))
        : readSchema.parse(await readOneScript.run(this.#redis, keys, [this.#clock.offset_ms, id]));
    return [now, hashes.map(toFields)];
  }
}

const NOTHING: ReadonlyMap<string, string> = new Map();

/** KEYS: hash · ARGV: clock offset, id · The same for one rule of it. */
const readOneScript = new Script(`#!lua flags=no-writes,allow-oom
${TIME_LUA}
local fields = {}
for _, name in ipairs({ '', ':at', ':until', ':max', ':uses', ':last', ':revoked' }) do
  local value = redis.call('HGET', KEYS[1], ARGV[2] .. name)
  if value then
    fields[#fields + 1] = ARGV[2] .. name
    fields[#fields + 1] = value
  end
end
return { redis_ms() + ARGV[1], fields }`);

function toFields(flat: readonly string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (let at = 0; at < flat.length; at += 2) fields.set(flat[at] ?? "", flat[at + 1] ?? "");
  return fields;
}
