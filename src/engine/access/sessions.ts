/**
 * Sessions of people: opened with a token or a single-use code, listed, revoked. A session has the rights of its token
 * and ends with it. Limit: only hashes are stored; a look-up is cached for a second.
 */
import * as z from "zod";
import type { Clock } from "../../lifecycle/command.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { newMark } from "../../redis/marked-read.ts";
import { readLua, Script } from "../../redis/script.ts";
import { randomId } from "../../redis/shards.ts";
import { ErrandError } from "../../schema/errors.ts";
import { LIMITS } from "../../schema/limits.ts";
import type { NewSession, Session, SessionCode, SessionPage } from "../../schema/session.ts";
import { withoutTrailingSlashes } from "../../schema/text.ts";
import { toInstant } from "../../schema/values.ts";
import { BoundedMap } from "../../util/bounded.ts";
import { AUDIT_LUA, auditArgs } from "../upkeep/audit.ts";
import { type Principal, toPrincipal } from "./access.ts";
import type { Identity, Lookup, Revocations } from "./revocations.ts";
import { hashOf, ID_LENGTH, SECRET_LENGTH, sameHash } from "./secret.ts";
import { isAfter, parseCursor, toCursor, toRows } from "./session-cursor.ts";

const SESSION_PREFIX = "errand_session_";
const CODE_PREFIX = "errand_code_";
const SESSION = /^errand_session_[0-9a-z]{62}$/;
const SESSION_ID = /^ses_[0-9a-z]{10}$/;
const CODE = /^errand_code_[0-9a-z]{52}$/;
const SESSION_MS = LIMITS.login_hours.value * 3_600_000;
const CODE_MS = LIMITS.login_code_minutes.value * 60_000;
const CACHE_MS = 1_000;
const CACHE_MAX = 10_000;

const script = (file: string): Script =>
  new Script(`#!lua flags=allow-oom\n${AUDIT_LUA}\n${readLua(file, import.meta.url)}`);
const createScript = script("./create-session.lua");
const createCodeScript = script("./create-session-code.lua");
const revokeScript = script("./revoke-session.lua");

/** The token that a session or code belongs to. */
const holderSchema = z.object({
  principal: z.string(),
  token_id: z.string().nullable(),
  /** For the operator token, which has no id: its mark, see `#operatorMark`. */
  operator: z.string().nullable(),
  token_expires_at: z.number().nullable(),
});
type Holder = z.infer<typeof holderSchema>;

const storedSchema = holderSchema.extend({
  hash: z.string(),
  created_at: z.number(),
  expires_at: z.number(),
});
type Stored = z.infer<typeof storedSchema>;

interface CachedSession {
  readonly stored: Stored;
  /** One object for all requests of the session. */
  readonly identity: Identity;
}

export interface SessionOptions {
  readonly redis: Redis;
  readonly clock: Clock;
  readonly revocations: Revocations;
  readonly operatorToken: string;
  /** The base of links. */
  readonly publicUrl: () => string;
}

const CODE_REFUSED = "The code is unknown, expired or used.";
const CODE_RECOVERY = "Request a new code: 'errand sessions link', or POST /v1/sessions/codes.";

export class Sessions implements Lookup {
  readonly #options: SessionOptions;
  /** Recognizes the sessions of this operator token. Stored, so it is not the hash that bearer tokens are compared with. */
  readonly #operatorMark: string;
  readonly #cache = new BoundedMap<string, { readonly found: CachedSession | null; readonly until: number }>(
    CACHE_MAX,
  );

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#operatorMark = hashOf(hashOf(options.operatorToken));
  }

  /** Opens a session for the token of a request. Throws `forbidden` for a session, which could renew itself forever. */
  create(identity: Identity): Promise<NewSession> {
    return this.#create(this.#holderOf(identity, "open sessions"), null);
  }

  /** Opens a session with a code. The code can be used once, at any gateway. */
  async redeem(code: string): Promise<NewSession> {
    const hash = hashOf(code);
    const json = CODE.test(code) ? await this.#options.redis.get(keys.sessionCode(hash)) : null;
    if (json === null) throw codeRefused();
    const holder = holderSchema.extend({ expires_at: z.number() }).parse(JSON.parse(json));
    if (holder.expires_at <= this.#now() || !this.#isOfOperator(holder)) throw codeRefused();
    return this.#create(holder, hash);
  }

  async createCode(identity: Identity): Promise<SessionCode> {
    const { redis, publicUrl } = this.#options;
    const holder = this.#holderOf(identity, "create codes");
    const code = `${CODE_PREFIX}${randomId(SECRET_LENGTH)}`;
    const hash = hashOf(code);
    const now = this.#now();
    const expires_at = Math.min(now + CODE_MS, holder.token_expires_at ?? Infinity);
    const created = await createCodeScript.run(
      redis,
      [keys.tokens, keys.sessionCodesOf(holder.principal), keys.sessionCode(hash)],
      [
        now,
        hash,
        JSON.stringify({ ...holder, expires_at }),
        expires_at,
        holder.token_id ?? "",
        LIMITS.login_codes.value,
        keys.sessionCode(""),
      ],
    );
    if (created !== 1) throw tokenRevoked();
    return {
      code,
      url: `${withoutTrailingSlashes(publicUrl())}/#code=${code}`,
      expires_at: toInstant(expires_at),
    };
  }

  /** The sessions that the principal may revoke: its own, or all for the operator. The last to expire is first. */
  async list(
    { principal, session_id }: Identity,
    { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
  ): Promise<SessionPage> {
    const { redis } = this.#options;
    const key = principal === "operator" ? keys.sessions : keys.sessionsOf(principal);
    const from = cursor === undefined ? null : parseCursor(cursor);
    // All ids at once: there are at most as many as the limit of sessions.
    const all = toRows(await redis.zrange(key, `(${this.#now()}`, "+inf", "BYSCORE", "WITHSCORES")).reverse();
    const start = from === null ? 0 : all.findIndex((row) => isAfter(row, from));
    const rows = start === -1 ? [] : all.slice(start, start + limit);
    const last = rows.at(-1);
    const found = rows.length === 0 ? [] : await redis.mget(rows.map(({ id }) => keys.session(id)));
    const sessions = found.flatMap((json, index) => {
      const id = rows[index]?.id;
      const stored = json === null || id === undefined ? null : parse(json);
      // A session of another operator token is not valid at this gateway.
      if (!stored || id === undefined || !this.#isOfOperator(stored)) return [];
      return [{ ...describe(id, stored), current: id === session_id }];
    });
    const isEnd = start === -1 || start + limit >= all.length;
    return { sessions, next_cursor: isEnd || !last ? null : toCursor(last) };
  }

  /** False if there is no such session, or if `by` is neither its principal nor the operator. */
  async revoke(id: string, by: Principal): Promise<boolean> {
    if (!SESSION_ID.test(id)) return false;
    const { redis, revocations } = this.#options;
    const entry = auditArgs(by, "session.revoke", id, {});
    const owner = by.kind === "operator" ? "" : by.text;
    const revoked = await revokeScript.run(
      redis,
      [keys.session(id), keys.sessions, entry.stream, keys.revokedMark],
      [id, owner, revocations.channel, keys.sessionsOf(""), newMark(), ...entry.args],
    );
    if (revoked === 1) revocations.endHere(id);
    // Also after a repeat: the first request may not have been confirmed.
    await revocations.confirm();
    return revoked === 1;
  }

  static isSecret(text: string): boolean {
    return SESSION.test(text);
  }

  /**
   * The identity of a session; null if there is none. The caller checks the token. `lastKnown`: while Redis does not
   * answer, a cached session still counts, unless it was revoked.
   */
  async find(secret: string, { lastKnown = false } = {}): Promise<Identity | null> {
    const id = `ses_${secret.slice(SESSION_PREFIX.length, SESSION_PREFIX.length + ID_LENGTH)}`;
    const found = await this.#find(id, { lastKnown });
    if (!found || !sameHash(hashOf(secret), found.stored.hash)) return null;
    if (found.stored.expires_at <= this.#now() || !this.#isOfOperator(found.stored)) return null;
    return found.identity;
  }

  forget(id?: string): void {
    if (id === undefined) this.#cache.clear();
    else this.#cache.delete(id);
  }

  async findMissing(ids: readonly string[]): Promise<string[]> {
    const found = await this.#options.redis.mget(ids.map((id) => keys.session(id)));
    return ids.filter((_, at) => !found[at]);
  }

  async #find(id: string, { lastKnown = false } = {}): Promise<CachedSession | null> {
    const now = Date.now();
    const cached = this.#cache.get(id);
    if (cached && cached.until > now) return cached.found;
    try {
      const json = await this.#options.redis.get(keys.session(id));
      const found = json === null ? null : toCached(id, parse(json));
      this.#cache.set(id, { found, until: now + CACHE_MS });
      return found;
    } catch (error) {
      if (lastKnown && cached) return cached.found;
      throw error;
    }
  }

  async #create(holder: Holder, codeHash: string | null): Promise<NewSession> {
    const { principal, token_id } = holder;
    const part = randomId(ID_LENGTH);
    const id = `ses_${part}`;
    const token = `${SESSION_PREFIX}${part}${randomId(SECRET_LENGTH)}`;
    const now = this.#now();
    const expires_at = Math.min(now + SESSION_MS, holder.token_expires_at ?? Infinity);
    const stored: Stored = { ...holder, hash: hashOf(token), created_at: now, expires_at };
    const session = describe(id, stored);
    const entry = auditArgs(toPrincipal(principal), "session.create", id, {
      token_id,
      with: codeHash === null ? "token" : "code",
      expires_at: session.expires_at,
    });
    const total = principal === "operator" ? "" : LIMITS.login_sessions_total.value;
    const names = [keys.tokens, keys.sessions, keys.sessionsOf(principal), keys.session(id), entry.stream];
    const ofCode = codeHash === null ? [] : [keys.sessionCode(codeHash), keys.sessionCodesOf(principal)];
    const outcome = await createScript.run(
      this.#options.redis,
      [...names, ...ofCode],
      [
        now,
        id,
        JSON.stringify(stored),
        expires_at,
        token_id ?? "",
        LIMITS.login_sessions.value,
        total,
        codeHash ?? "",
        keys.session(""),
        ...entry.args,
      ],
    );
    if (outcome === "created") return { ...session, token };
    if (outcome === "used") throw codeRefused();
    if (outcome === "revoked") throw tokenRevoked();
    throw outcome === "full" ? tooMany(principal) : tooManyInTotal();
  }

  #holderOf(identity: Identity, what: string): Holder {
    const { principal, token_id, session_id, expires_at } = identity;
    if (session_id !== null) {
      throw new ErrandError("forbidden", `A session may not ${what}.`, {
        recovery: "Send the token that opened the session.",
      });
    }
    const operator = token_id === null ? this.#operatorMark : null;
    return { principal, token_id, operator, token_expires_at: expires_at };
  }

  /** False for a session or code of another operator token. */
  #isOfOperator({ operator }: Holder): boolean {
    return operator === null || sameHash(operator, this.#operatorMark);
  }

  #now(): number {
    return Date.now() + this.#options.clock.offset_ms;
  }
}

const parse = (json: string): Stored => storedSchema.parse(JSON.parse(json));

function toCached(id: string, stored: Stored): CachedSession {
  const { principal, token_id, expires_at } = stored;
  return { stored, identity: { principal, token_id, session_id: id, expires_at } };
}

function describe(id: string, { principal, token_id, created_at, expires_at }: Stored): Session {
  return {
    id,
    principal,
    role: toPrincipal(principal).kind,
    token_id,
    created_at: toInstant(created_at),
    expires_at: toInstant(expires_at),
  };
}

const codeRefused = () => new ErrandError("unauthenticated", CODE_REFUSED, { recovery: CODE_RECOVERY });
const tokenRevoked = () => new ErrandError("unauthenticated", "The token is expired or revoked.");

function tooMany(principal: string): ErrandError {
  const maximum = LIMITS.login_sessions.value;
  return new ErrandError("limit_reached", `${principal} has too many sessions; the limit is ${maximum}.`, {
    details: { limit: "login_sessions", maximum },
    recovery: "Revoke sessions that are no longer used: 'errand sessions list', 'errand sessions revoke'.",
  });
}

function tooManyInTotal(): ErrandError {
  const maximum = LIMITS.login_sessions_total.value;
  return new ErrandError("limit_reached", `There are too many sessions; the limit is ${maximum}.`, {
    details: { limit: "login_sessions_total", maximum },
    recovery: "Ask the operator to revoke sessions that are no longer used.",
  });
}
