/**
 * Closes the streams and parked polls of a token or session that is revoked or expires. The script that
 * revokes it sends a message to all gateways. Limit: a message may be lost. So a gateway looks up everything that it
 * watches after a gap in the messages, and when the mark of revocations, read every second, has changed.
 */
import type { Bus } from "../../redis/bus.ts";
import type { Redis } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import { NO_REPLICAS, type Replicas } from "../../redis/replicas.ts";
import type { TokenLimits } from "../../schema/token.ts";
import { LastMark } from "../../util/marked-cache.ts";
import { MAX_TIMER_MS } from "../../util/timing.ts";

/** How long a revocation is remembered, for requests that were authenticated before it. */
const REVOKED_KEPT_MS = 120_000;
/** The pause before a failed recheck is repeated. */
const RECHECK_MS = 200;
const MARK_CHECK_MS = 1_000;
const IDS_PER_COMMAND = 500;

/** The caller of a request. Requests of one token or session share one object. */
export interface Identity extends TokenLimits {
  readonly principal: string;
  /** Null for the configured operator token. */
  readonly token_id: string | null;
  /** Null for a request with the token itself. */
  readonly session_id: string | null;
  readonly expires_at: number | null;
}

/** The caller with the configured operator token. */
export const OPERATOR_IDENTITY: Identity = {
  principal: "operator",
  token_id: null,
  session_id: null,
  expires_at: null,
};

/** Watches the token, and the session, of an open stream or parked poll. */
export interface TokenWatch {
  hasEnded(): boolean;
  release(): void;
}

/** For the configured operator token, which does not expire. */
const ENDLESS: TokenWatch = { hasEnded: () => false, release() {} };

/** A class, because there may be thousands, and closures take more memory. */
class Watch implements TokenWatch {
  readonly identity: Identity;
  readonly #watches: Set<Watch>;
  readonly #onEnd: () => void;
  readonly #timer: NodeJS.Timeout | null;
  #ended = false;

  constructor(watches: Set<Watch>, identity: Identity, end: () => void) {
    this.#watches = watches.add(this);
    this.identity = identity;
    this.#onEnd = end;
    const { expires_at } = identity;
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

/** Where tokens or sessions are looked up. */
export interface Lookup {
  /** Drops the cached look-up of an id, or all of them. */
  forget(id?: string): void;
  /** Returns those of the ids that are no longer stored. */
  findMissing(ids: readonly string[]): Promise<string[]>;
}

export class Revocations {
  /** Replaced whenever a token or session is revoked. */
  readonly mark: LastMark;
  readonly #bus: Bus;
  readonly #replicas: Replicas;
  readonly #revokedAt = new Map<string, number>();
  /** One set for all tokens: a set for each would take more memory, and revocations are rare. */
  readonly #watches = new Set<Watch>();
  #tokens: Lookup | undefined;
  #sessions: Lookup | undefined;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;
  /** The mark at the last look at the watches. */
  #checkedMark: string | null = null;

  constructor(redis: Redis, bus: Bus, replicas: Replicas = NO_REPLICAS) {
    this.mark = new LastMark(() => redis.get(keys.revokedMark));
    this.#bus = bus;
    this.#replicas = replicas;
  }

  async start(tokens: Lookup, sessions: Lookup): Promise<void> {
    this.#tokens = tokens;
    this.#sessions = sessions;
    await this.#bus.subscribe(keys.revoked, (id) => this.endHere(id));
    this.#bus.onGap(() => {
      tokens.forget();
      sessions.forget();
      this.#recheck();
    });
    await this.mark.refresh();
    this.#checkedMark = this.mark.value;
    this.#timer = setInterval(() => void this.#compareMark(), MARK_CHECK_MS).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** The channel of revocations, for scripts that publish one. */
  get channel(): string {
    return this.#bus.nameOf(keys.revoked);
  }

  /** Calls `end` when the token or session is revoked or expires, or at once if that has already happened. */
  watch(identity: Identity, end: () => void): TokenWatch {
    const { token_id, session_id } = identity;
    if (token_id === null && session_id === null) return ENDLESS;
    const watch = new Watch(this.#watches, identity, end);
    // Revoked after the request was authenticated.
    if ([token_id, session_id].some((id) => id !== null && this.#revokedAt.has(id))) watch.end();
    return watch;
  }

  /**
   * Resolves when the replicas required by ERRAND_REDIS_WAIT_REPLICAS have all revocations so far. Otherwise a fail-over
   * could make a revoked token valid again.
   */
  confirm(): Promise<void> {
    return this.#replicas.confirm(keys.replicated);
  }

  /** Ends the token or session at this gateway. */
  endHere(id: string): void {
    this.#tokens?.forget(id);
    this.#sessions?.forget(id);
    this.#revokedAt.set(id, Date.now());
    // An older revocation needs no entry: no cached identity is left.
    for (const [old, at] of this.#revokedAt)
      if (at < Date.now() - REVOKED_KEPT_MS) this.#revokedAt.delete(old);
    for (const watch of this.#watches) {
      if (watch.identity.token_id === id || watch.identity.session_id === id) watch.end();
    }
  }

  async #compareMark(): Promise<void> {
    if (this.#watches.size === 0) return;
    await this.mark.refresh().catch(() => {});
    if (this.mark.value === this.#checkedMark) return;
    this.#checkedMark = this.mark.value;
    this.#recheck();
  }

  /** Looks up every watched token and session; retries until all were checked. */
  #recheck(): void {
    Promise.all([
      this.#endMissing(this.#tokens, ({ token_id }) => token_id),
      this.#endMissing(this.#sessions, ({ session_id }) => session_id),
    ]).catch(() => {
      if (!this.#isStopped) setTimeout(() => this.#recheck(), RECHECK_MS).unref();
    });
  }

  async #endMissing(lookup: Lookup | undefined, of: (identity: Identity) => string | null): Promise<void> {
    const watched = new Set([...this.#watches].map(({ identity }) => of(identity)));
    const ids = [...watched].filter((id) => id !== null);
    for (let at = 0; at < ids.length; at += IDS_PER_COMMAND) {
      const missing = (await lookup?.findMissing(ids.slice(at, at + IDS_PER_COMMAND))) ?? [];
      for (const id of missing) this.endHere(id);
    }
  }
}
