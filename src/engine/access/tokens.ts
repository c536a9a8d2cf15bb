/**
 * Creates, checks and revokes bearer tokens. Only a hash is stored. A revocation ends the token's streams, polls and
 * sessions. Limit: look-ups are cached. Other gateways learn of a revocation by message, or within a second from its mark.
 */
import * as z from "zod";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { newMark, readMarkedField } from "../../redis/marked-read.ts";
import { readLua, Script } from "../../redis/script.ts";
import { randomId } from "../../redis/shards.ts";
import { periodBudgetsSchema } from "../../schema/budget.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { TokenInfo, TokenLimits, TokenRequest } from "../../schema/token.ts";
import { toInstant } from "../../schema/values.ts";
import { MarkedCache } from "../../util/marked-cache.ts";
import { AUDIT_LUA, auditArgs } from "../upkeep/audit.ts";
import { type Principal, toPrincipal } from "./access.ts";
import { requireCurrencies } from "./currencies.ts";
import {
  type Identity,
  type Lookup,
  OPERATOR_IDENTITY,
  type Revocations,
  type TokenWatch,
} from "./revocations.ts";
import { hashOf, ID_LENGTH, SECRET_LENGTH, sameHash } from "./secret.ts";
import { Sessions } from "./sessions.ts";

const PREFIX = "errand_";
const TOKEN = new RegExp(`^${PREFIX}[0-9a-z]{${ID_LENGTH + SECRET_LENGTH}}$`);
const CACHE_BYTES = 8 * 1024 * 1024;
/** What a cached look-up takes besides its principal. */
const CACHED_BYTES = 500;
/** The maximum number of expired tokens that one creation deletes. */
const EXPIRED_BATCH = 100;
const OPERATOR = toPrincipal("operator");
/** No id of a token has a colon. */
const OPERATOR_HOLDER = "operator:";

/**
 * KEYS: tokens, expiring, audit · ARGV: id, JSON, expires at or empty, the limit of tokens, then the audit entry ·
 * Returns 1 when it was created, 0 when there are too many.
 */
const createScript = new Script(`#!lua flags=allow-oom
${AUDIT_LUA}
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1]) end
audit(KEYS[3], {unpack(ARGV, 5)}, 0)
return 1`);

const revokeScript = new Script(`#!lua flags=allow-oom
${AUDIT_LUA}
${readLua("./revoke-token.lua", import.meta.url)}`);

const storedSchema = z.object({
  hash: z.string(),
  principal: z.string(),
  created_at: z.number(),
  expires_at: z.number().nullable(),
  max_priority: z.int().optional(),
  budgets: periodBudgetsSchema.optional(),
});
type Stored = z.infer<typeof storedSchema>;

/** A cached look-up, with one identity object for all requests of the token. */
interface CachedToken {
  readonly identity: Identity;
  readonly hash: string;
}

function toCached(token_id: string, json: string): CachedToken {
  const { hash, principal, expires_at, max_priority, budgets } = storedSchema.parse(JSON.parse(json));
  return { identity: { principal, token_id, session_id: null, expires_at, max_priority, budgets }, hash };
}

export class Tokens implements Lookup {
  readonly #redis: Redis;
  readonly #revocations: Revocations;
  readonly #sessions: Sessions;
  readonly #operatorHash: string;
  readonly #operatorHolder: string;
  readonly #onRevoked: (id: string) => Promise<void>;
  readonly #cache = new MarkedCache<CachedToken>({
    maxBytes: CACHE_BYTES,
    bytesOf: ({ identity }) => CACHED_BYTES + identity.principal.length,
  });

  /** Sessions with the highest priority of their tokens, by the identities that the sessions cache. */
  readonly #limitedSessions = new WeakMap<Identity, Identity>();

  /** `onRevoked` ends what depends on a token, before its revocation is acknowledged. */
  constructor(
    redis: Redis,
    revocations: Revocations,
    sessions: Sessions,
    operatorToken: string,
    onRevoked: (id: string) => Promise<void> = async () => {},
  ) {
    this.#onRevoked = onRevoked;
    this.#redis = redis;
    this.#revocations = revocations;
    this.#sessions = sessions;
    this.#operatorHash = hashOf(operatorToken);
    // Not the hash that bearer tokens are compared with.
    this.#operatorHolder = `${OPERATOR_HOLDER}${hashOf(`holder ${operatorToken}`)}`;
  }

  async create(request: TokenRequest, by: Principal = OPERATOR): Promise<TokenInfo & { token: string }> {
    const id = randomId(ID_LENGTH);
    const token = `${PREFIX}${id}${randomId(SECRET_LENGTH)}`;
    const now = Date.now();
    const expires_at =
      request.expires_in_seconds === undefined ? null : now + Math.round(request.expires_in_seconds * 1000);
    const { principal, max_priority, budgets } = request;
    requireCurrencies(budgets);
    const stored: Stored = {
      hash: hashOf(token),
      principal,
      created_at: now,
      expires_at,
      max_priority,
      budgets,
    };
    const made = describe(id, stored);
    const entry = auditArgs(by, "token.create", id, {
      principal: made.principal,
      expires_at: made.expires_at,
      max_priority,
      budgets,
    });
    await this.#deleteExpired(now);
    const maximum = LIMITS.tokens.value;
    const written = await createScript.run(
      this.#redis,
      [keys.tokens, keys.expiring, entry.stream],
      [id, JSON.stringify(stored), expires_at ?? "", maximum, ...entry.args],
    );
    if (written !== 1) {
      throw new ErrandError("limit_reached", `There are too many tokens; the limit is ${maximum}.`, {
        details: { limit: "tokens", maximum },
        recovery: "Revoke tokens that are no longer used, and give new ones an expiry.",
      });
    }
    return { ...made, token };
  }

  async list(): Promise<TokenInfo[]> {
    const all = Object.entries(await this.#redis.hgetall(keys.tokens));
    return all
      .map(([id, json]) => describe(id, storedSchema.parse(JSON.parse(json))))
      .sort((a, b) => a.created_at.localeCompare(b.created_at));
  }

  /** Runs with each creation, so that expired tokens do not pile up. */
  async #deleteExpired(now: number): Promise<void> {
    const expired = await this.#redis.zrangebyscore(keys.expiring, "-inf", now, "LIMIT", 0, EXPIRED_BATCH);
    if (expired.length === 0) return;
    await this.#redis.hdel(keys.tokens, ...expired);
    await this.#redis.zrem(keys.expiring, ...expired);
  }

  /** False when there is no such token. */
  revoke(id: string, by: Principal = OPERATOR): Promise<boolean> {
    return this.#revoke(id, auditArgs(by, "token.revoke", id, {}));
  }

  /** Revokes all tokens of a principal, without audit entries: the action that revokes them has its own. */
  async revokeAll(principal: string): Promise<void> {
    for (const token of await this.list()) if (token.principal === principal) await this.#revoke(token.id);
  }

  async #revoke(id: string, entry?: ReturnType<typeof auditArgs>): Promise<boolean> {
    const revoked = await revokeScript.run(
      this.#redis,
      [keys.tokens, keys.expiring, entry?.stream ?? keys.audit, keys.sessions, keys.revokedMark],
      [
        id,
        keys.session(""),
        keys.sessionsOf(""),
        newMark(),
        this.#revocations.channel,
        ...(entry?.args ?? []),
      ],
    );
    this.#revocations.endHere(id);
    await this.#onRevoked(id);
    // Also after a repeat: the first request may not have been confirmed.
    await this.#revocations.confirm();
    return revoked === 1;
  }

  /**
   * The identity of a token or session; throws `unauthenticated` without details. `lastKnown`: while Redis does not
   * answer, a cached identity still counts, unless its token or session was revoked.
   */
  async identify(token: string, { lastKnown = false } = {}): Promise<Identity> {
    const hash = hashOf(token);
    if (sameHash(hash, this.#operatorHash)) {
      return OPERATOR_IDENTITY;
    }
    if (TOKEN.test(token)) {
      const id = token.slice(PREFIX.length, PREFIX.length + ID_LENGTH);
      const found = await this.#find(id, { lastKnown });
      if (found && sameHash(hash, found.hash) && !hasPassed(found.identity.expires_at)) return found.identity;
    } else if (Sessions.isSecret(token)) {
      const session = await this.#sessions.find(token, { lastKnown });
      if (session?.token_id === null) return session;
      // Revoking a token deletes its sessions; this check holds even if one remained.
      const found = session && (await this.#find(session.token_id, { lastKnown }));
      if (found) return this.#limited(session, found.identity);
    }
    throw new ErrandError("unauthenticated", "The token is unknown, expired or revoked.");
  }

  /**
   * What stands for the token of a request, later and without it: its id, or for the operator's a hash. Schedules, rules and
   * subscriptions store it.
   */
  holderOf({ token_id }: Identity): string {
    return token_id ?? this.#operatorHolder;
  }

  /** Whether that token is still valid: it is neither revoked nor expired, nor an operator's that was replaced. */
  async isHolder(holder: string): Promise<boolean> {
    if (isOperator(holder)) return holder === this.#operatorHolder;
    const found = await this.#find(holder);
    return found !== null && !hasPassed(found.identity.expires_at);
  }

  /** When that token expires, ms, read from Redis and not from the cache; null: never; undefined: it is not valid. */
  async readExpiry(holder: string): Promise<number | null | undefined> {
    if (isOperator(holder)) return holder === this.#operatorHolder ? null : undefined;
    const json = await this.#redis.hget(keys.tokens, holder);
    return json === null ? undefined : storedSchema.parse(JSON.parse(json)).expires_at;
  }

  /** What limits the work that is delegated with that token. */
  async limitsOf(holder: string): Promise<TokenLimits> {
    return (isOperator(holder) ? undefined : (await this.#find(holder))?.identity) ?? {};
  }

  /** The session with the limits of its token; one object for all its requests. */
  #limited(session: Identity, { max_priority, budgets }: Identity): Identity {
    if (max_priority === undefined && budgets === undefined) return session;
    const known = this.#limitedSessions.get(session) ?? { ...session, max_priority, budgets };
    this.#limitedSessions.set(session, known);
    return known;
  }

  /** Calls `end` when the token or session is revoked or expires, or at once if that has already happened. */
  watch(identity: Identity, end: () => void): TokenWatch {
    return this.#revocations.watch(identity, end);
  }

  forget(id?: string): void {
    if (id === undefined) this.#cache.clear();
    else this.#cache.delete(id);
  }

  async findMissing(ids: readonly string[]): Promise<string[]> {
    const found = await this.#redis.hmget(keys.tokens, ...ids);
    return ids.filter((_, at) => !found[at]);
  }

  /** Null when there is no such token. `lastKnown`: a cached look-up counts while Redis does not answer. */
  async #find(id: string, { lastKnown = false } = {}): Promise<CachedToken | null> {
    try {
      return await this.#cache.find(id, this.#revocations.mark, async () => {
        const { value, mark } = await readMarkedField(this.#redis, keys.tokens, id, keys.revokedMark);
        return { value: value === null ? null : toCached(id, value), mark };
      });
    } catch (error) {
      const known = lastKnown ? this.#cache.lastKnown(id) : null;
      if (known) return known;
      throw error;
    }
  }
}

const isOperator = (holder: string): boolean => holder.startsWith(OPERATOR_HOLDER);
const hasPassed = (at: number | null): boolean => at !== null && at <= Date.now();

function describe(id: string, stored: Stored): TokenInfo {
  return {
    id,
    principal: stored.principal,
    created_at: toInstant(stored.created_at),
    expires_at: stored.expires_at === null ? null : toInstant(stored.expires_at),
    ...(stored.max_priority !== undefined && { max_priority: stored.max_priority }),
    ...(stored.budgets !== undefined && { budgets: stored.budgets }),
  };
}
