/**
 * Creates, checks and revokes bearer tokens. Only a hash is stored. A revocation closes the token's streams, polls and
 * sessions. Limit: a look-up is cached for a second; revocations reach the other gateways by message.
 */

import { hash as digest, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Bus } from "../../redis/bus.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { readLua, Script } from "../../redis/script.ts";
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { TokenInfo, TokenRequest } from "../../schema/token.ts";
import { toInstant } from "../../schema/values.ts";
import { BoundedMap } from "../../util/bounded.ts";
import { AUDIT_LUA, auditArgs } from "../upkeep/audit.ts";
import { type Principal, toPrincipal } from "./access.ts";

const PREFIX = "errand_";
const ID_LENGTH = 10;
/** Characters of five bits each: 260 bits. */
const SECRET_LENGTH = 52;
const TOKEN = new RegExp(`^${PREFIX}[0-9a-z]{${ID_LENGTH + SECRET_LENGTH}}$`);
const CACHE_MS = 1_000;
const CACHE_MAX = 10_000;
const REVOKED_KEPT_MS = 120_000;
/** The most expired tokens that one creation deletes. */
const EXPIRED_BATCH = 100;
const RECHECK_MS = 200;
const MAX_TIMER_MS = 2 ** 31 - 1;
const OPERATOR = toPrincipal("operator");

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
});
type Stored = z.infer<typeof storedSchema>;

export interface Identity {
  readonly principal: string;
  /** Null for the configured operator token. */
  readonly token_id: string | null;
  readonly expires_at: number | null;
}

/** A cached look-up, with one identity object for all requests of the token. */
interface CachedToken {
  /** Null when there is no such token. */
  readonly identity: Identity | null;
  readonly hash: string;
  readonly until: number;
}

function toCached(token_id: string, json: string | null, until: number): CachedToken {
  if (json === null) return { identity: null, hash: "", until };
  const { hash, principal, expires_at } = storedSchema.parse(JSON.parse(json));
  return { identity: { principal, token_id, expires_at }, hash, until };
}

const hashOf = (token: string): string => digest("sha256", token, "hex");
const sameHash = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** Watches the token of an open stream, parked poll or session. */
export interface TokenWatch {
  hasEnded(): boolean;
  release(): void;
}

/** For the configured operator token, which does not expire. */
const ENDLESS: TokenWatch = { hasEnded: () => false, release() {} };

/** A class, because there may be thousands, and closures take more memory. */
class Watch implements TokenWatch {
  readonly token_id: string;
  readonly #watches: Set<Watch>;
  readonly #onEnd: () => void;
  readonly #timer: NodeJS.Timeout | null;
  #ended = false;

  constructor(watches: Set<Watch>, token_id: string, expires_at: number | null, end: () => void) {
    this.#watches = watches.add(this);
    this.token_id = token_id;
    this.#onEnd = end;
    const left = expires_at === null ? null : Math.min(Math.max(0, expires_at - Date.now()), MAX_TIMER_MS);
    this.#timer = left === null ? null : setTimeout(() => this.end(), left).unref();
  }

  end(): void {
    this.#ended = true;
    this.#onEnd();
  }

  hasEnded(): boolean {
    return this.#ended;
  }

  release(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#watches.delete(this);
  }
}

export class Tokens {
  readonly #redis: Redis;
  readonly #bus: Bus;
  readonly #operatorHash: string;
  readonly #cache = new BoundedMap<string, CachedToken>(CACHE_MAX);
  readonly #revokedAt = new Map<string, number>();
  /** One set for all tokens: a set for each would take more memory, and revocations are rare. */
  readonly #watches = new Set<Watch>();

  constructor(redis: Redis, bus: Bus, operatorToken: string) {
    this.#redis = redis;
    this.#bus = bus;
    this.#operatorHash = hashOf(operatorToken);
  }

  async start(): Promise<void> {
    await this.#bus.subscribe(keys.revoked, (id) => this.#end(id));
    this.#bus.onGap(() => this.#recheckWatches());
  }

  async create(request: TokenRequest, by: Principal = OPERATOR): Promise<TokenInfo & { token: string }> {
    const id = randomId(ID_LENGTH);
    const token = `${PREFIX}${id}${randomId(SECRET_LENGTH)}`;
    const now = Date.now();
    const expires_at =
      request.expires_in_seconds === undefined ? null : now + Math.round(request.expires_in_seconds * 1000);
    const stored: Stored = { hash: hashOf(token), principal: request.principal, created_at: now, expires_at };
    const made = describe(id, stored);
    const entry = auditArgs(by, "token.create", id, {
      principal: made.principal,
      expires_at: made.expires_at,
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
    const names = [keys.tokens, keys.expiring, entry?.stream ?? keys.audit];
    const revoked = await revokeScript.run(this.#redis, names, [id, ...(entry?.args ?? [])]);
    // Before the message is sent, because sending may fail.
    this.#end(id);
    await this.#bus.publish(keys.revoked, id);
    return revoked === 1;
  }

  /**
   * The identity of a token; throws `unauthenticated` without details. `lastKnown`: while Redis does not answer, a cached
   * identity still counts, unless its token was revoked.
   */
  async identify(token: string, { lastKnown = false } = {}): Promise<Identity> {
    const hash = hashOf(token);
    if (sameHash(hash, this.#operatorHash)) {
      return { principal: "operator", token_id: null, expires_at: null };
    }
    if (TOKEN.test(token)) {
      const id = token.slice(PREFIX.length, PREFIX.length + ID_LENGTH);
      const last = lastKnown ? this.#cache.get(id) : undefined;
      const { identity, hash: stored } = await this.#find(id).catch((error: unknown) => {
        if (last) return last;
        throw error;
      });
      if (identity && sameHash(hash, stored) && !hasPassed(identity.expires_at)) return identity;
    }
    throw new ErrandError("unauthenticated", "The token is unknown, expired or revoked.");
  }

  /** Calls `end` when the token is revoked or expires, at once if it was already; for streams and parked polls. */
  watch({ token_id, expires_at }: Identity, end: () => void): TokenWatch {
    if (token_id === null) return ENDLESS;
    const watch = new Watch(this.#watches, token_id, expires_at, end);
    // The token was revoked after it was identified.
    if (this.#revokedAt.has(token_id)) watch.end();
    return watch;
  }

  async #find(id: string): Promise<CachedToken> {
    const now = Date.now();
    const cached = this.#cache.get(id);
    if (cached && cached.until > now) return cached;
    const known = toCached(id, await this.#redis.hget(keys.tokens, id), now + CACHE_MS);
    this.#cache.set(id, known);
    return known;
  }

  #end(id: string): void {
    this.#cache.delete(id);
    this.#revokedAt.set(id, Date.now());
    // An older revocation needs no entry: no cached identity is left.
    for (const [old, at] of this.#revokedAt)
      if (at < Date.now() - REVOKED_KEPT_MS) this.#revokedAt.delete(old);
    for (const watch of this.#watches) if (watch.token_id === id) watch.end();
  }

  /** Retries until every token was checked. */
  #recheckWatches(): void {
    this.#cache.clear();
    const recheck = async () => {
      const watched = new Set([...this.#watches].map(({ token_id }) => token_id));
      for (const id of watched) if ((await this.#find(id)).identity === null) this.#end(id);
    };
    recheck().catch(() => {
      if (this.#redis.status !== "end") setTimeout(() => this.#recheckWatches(), RECHECK_MS).unref();
    });
  }
}

const hasPassed = (at: number | null): boolean => at !== null && at <= Date.now();

function describe(id: string, stored: Stored): TokenInfo {
  return {
    id,
    principal: stored.principal,
    created_at: toInstant(stored.created_at),
    expires_at: stored.expires_at === null ? null : toInstant(stored.expires_at),
  };
}
