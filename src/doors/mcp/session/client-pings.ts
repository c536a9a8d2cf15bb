/** Pings the client of one session, and remembers whether it answers pings at all. */
import { ProtocolError } from "@modelcontextprotocol/server";
import { LRUCache } from "lru-cache";

export const PING_TIMEOUT_MS = 10_000;

type Ping = (options: { readonly timeout: number; readonly signal: AbortSignal }) => Promise<unknown>;

export class ClientPings {
  readonly #timeout: number;
  #answersPings: Promise<boolean> | undefined;

  constructor(timeout = PING_TIMEOUT_MS) {
    this.#timeout = timeout;
  }

  /** Whether this client answers pings at all; only the first call pings it. */
  answersPings(ping: Ping, signal: AbortSignal): Promise<boolean> {
    this.#answersPings ??= this.isAlive(ping, signal).then((alive) => {
      // A call that ended early proves nothing; the next call asks again.
      if (!alive && signal.aborted) this.#answersPings = undefined;
      return alive;
    });
    return this.#answersPings;
  }

  async isAlive(ping: Ping, signal: AbortSignal): Promise<boolean> {
    try {
      await ping({ timeout: this.#timeout, signal });
      return true;
    } catch (error) {
      // An error response is an answer too.
      return error instanceof ProtocolError;
    }
  }
}

/** So many principals, and so many sessions of each, so that none pushes out what is known of another's. */
const PRINCIPALS = 1_000;
const SESSIONS = 100;

/** What is known of the clients that called lately. */
export class KnownClients {
  readonly #timeout: number | undefined;
  readonly #principals = new LRUCache<string, LRUCache<string, ClientPings>>({ max: PRINCIPALS });

  constructor(timeout?: number) {
    this.#timeout = timeout;
  }

  of(principal: string, session: string): ClientPings {
    const sessions = this.#principals.get(principal) ?? new LRUCache({ max: SESSIONS });
    this.#principals.set(principal, sessions);
    const known = sessions.get(session) ?? new ClientPings(this.#timeout);
    sessions.set(session, known);
    return known;
  }
}
