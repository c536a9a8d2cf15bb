/**
 * Classifies errors of Redis and of the connection to it: one table for the error that a client gets, reconnects and
 * the log. Limit: an error that is not in the table is a bug, and counts as `internal`.
 */

export interface RedisErrorClass {
  /** The code of the error that a client gets. */
  readonly code: "redis_unavailable" | "overloaded";
  /** `no`: Redis refused the command before it did anything. `unknown`: the answer never came. */
  readonly executed: "no" | "unknown";
  /**
   * Reconnect, at most once in this many ms, because the server may no longer be the master. Null: do not reconnect.
   */
  readonly reconnectMs: number | null;
}

const refused = (reconnectMs: number | null = null): RedisErrorClass => ({
  code: "redis_unavailable",
  executed: "no",
  reconnectMs,
});

/** Errors by the first word of their text. */
export const REDIS_ERRORS = {
  /** A replica; after a fail-over behind one address, the former master. */
  READONLY: refused(1_000),
  /** A blocking read ended because the master became a replica. */
  UNBLOCKED: refused(1_000),
  /** A replica that lost its master, and refuses to serve stale data. */
  MASTERDOWN: refused(1_000),
  /** `min-replicas-to-write`: a master cut off from its replicas, perhaps replaced by now. */
  NOREPLICAS: refused(5_000),
  /** The slot is served elsewhere. */
  MOVED: refused(5_000),
  ASK: refused(5_000),
  CLUSTERDOWN: refused(5_000),
  TRYAGAIN: refused(),
  /** The password changed, or the server lost its users. */
  NOAUTH: refused(5_000),
  WRONGPASS: refused(5_000),
  /** The server is still loading its data after a restart. */
  LOADING: refused(),
  /** A script, not one of ours, runs for too long. */
  BUSY: refused(),
  /** The server cannot persist: the disk is full, or broken. */
  MISCONF: refused(),
  OOM: { code: "overloaded", executed: "no", reconnectMs: null },
} as const satisfies Record<string, RedisErrorClass>;

type Prefix = keyof typeof REDIS_ERRORS;

/** Errors without such a word, by a part of their text. */
const PHRASES: readonly (readonly [phrase: string, class_: RedisErrorClass])[] = [
  ["max number of clients reached", refused(1_000)],
  ["Script killed by user", refused()],
];

/** The driver's own errors: it gave up, and the outcome of the command is unknown. */
const DRIVER =
  /Command timed out|Connection is closed|Stream isn't writeable|Socket (?:timeout|closed)|max retries/i;
const ERRNOS: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ENOENT", "ETIMEDOUT"],
  ...["EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN", "EMFILE", "ENFILE"],
]);
const UNANSWERED: RedisErrorClass = { code: "redis_unavailable", executed: "unknown", reconnectMs: null };

const isPrefix = (word: string): word is Prefix => Object.hasOwn(REDIS_ERRORS, word);

/** Older servers put the script's location before the word. */
function prefixOf(message: string): Prefix | undefined {
  for (const part of message.split(": ")) {
    const word = /^@?-?([A-Z]+)\b/.exec(part)?.[1];
    if (word !== undefined && isPrefix(word)) return word;
  }
  return undefined;
}

/** Null when Redis is not the cause: a bug, or a refusal that the caller handles. */
export function classify(error: unknown): RedisErrorClass | null {
  if (!(error instanceof Error)) return null;
  const { message } = error;
  if (error.name !== "ReplyError") {
    const isOurs = DRIVER.test(message) || ("code" in error && ERRNOS.has(String(error.code)));
    return isOurs ? UNANSWERED : null;
  }
  const prefix = prefixOf(message);
  if (prefix !== undefined) return REDIS_ERRORS[prefix];
  return PHRASES.find(([phrase]) => message.includes(phrase))?.[1] ?? null;
}

/** Redis does not answer, or refuses all clients. */
export const isUnavailable = (error: unknown): boolean => classify(error)?.code === "redis_unavailable";

/** Redis is out of memory: new work is refused, work in flight goes on. */
export const isOutOfMemory = (error: unknown): boolean => classify(error)?.code === "overloaded";

/** Redis refused the command, so it has no effect. */
export const isRefused = (error: unknown): boolean => classify(error)?.executed === "no";
