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
  /** Another server is responsible. In a Cluster the driver finds it, and keeps its other connections. */
  readonly isElsewhere: boolean;
}

const refused = (reconnectMs: number | null = null): RedisErrorClass => ({
  code: "redis_unavailable",
  executed: "no",
  reconnectMs,
  isElsewhere: false,
});
const elsewhere = (reconnectMs: number): RedisErrorClass => ({ ...refused(reconnectMs), isElsewhere: true });

/** Errors by the first word of their text. */
export const REDIS_ERRORS = {
  /** A replica; after a fail-over behind one address, the former master. */
  READONLY: elsewhere(1_000),
  /** A blocking read ended because the master became a replica. */
  UNBLOCKED: elsewhere(1_000),
  /** A replica that lost its master, and refuses to serve stale data. */
  MASTERDOWN: elsewhere(1_000),
  /** `min-replicas-to-write`: a master cut off from its replicas, perhaps replaced by now. */
  NOREPLICAS: elsewhere(5_000),
  /** The slot is served elsewhere. */
  MOVED: elsewhere(5_000),
  ASK: elsewhere(5_000),
  CLUSTERDOWN: elsewhere(5_000),
  /** The keys of a slot that moves are on two nodes. */
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
  OOM: { ...refused(), code: "overloaded" },
} as const satisfies Record<string, RedisErrorClass>;

type Prefix = keyof typeof REDIS_ERRORS;

const SLOT_MOVES = "access a non local key in a cluster node";

/** Errors without such a word, by a part of their text. */
const PHRASES: readonly (readonly [phrase: string, class_: RedisErrorClass])[] = [
  ["max number of clients reached", refused(1_000)],
  ["Script killed by user", refused()],
  // A script's errors for CLUSTERDOWN, and for ASK and TRYAGAIN. Our scripts get both before they write (script.ts).
  ["while the cluster is down", refused()],
  [SLOT_MOVES, refused()],
];

/** The driver's own errors: it gave up, and the outcome of the command is unknown. */
const DRIVER =
  /Command timed out|Connection is closed|Stream isn't writeable|Socket (?:timeout|closed)|max retries|Command aborted|None of startup nodes|Cluster is (?:ended|disconnect)|Cluster isn't ready|Failed to refresh slots/i;
/** Every try was answered by a refusal, such as TRYAGAIN. */
const REDIRECTED = /Too many Cluster redirections/;
const ERRNOS: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ENOENT", "ETIMEDOUT"],
  ...["EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN", "EMFILE", "ENFILE"],
]);
const UNANSWERED: RedisErrorClass = { ...refused(), executed: "unknown" };

/** Written, but not replicated as required: whether it survives a fail-over is not known. */
export const isNotReplicated = (error: unknown): boolean =>
  error instanceof Error && error.name === "NotReplicated";

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
    if (REDIRECTED.test(message)) return refused();
    if (isNotReplicated(error)) return UNANSWERED;
    const isOurs = DRIVER.test(message) || ("code" in error && ERRNOS.has(String(error.code)));
    return isOurs ? UNANSWERED : null;
  }
  const prefix = prefixOf(message);
  if (prefix !== undefined) return REDIS_ERRORS[prefix];
  return PHRASES.find(([phrase]) => message.includes(phrase))?.[1] ?? null;
}

/** A script met a slot that is moving to another node of the Cluster. */
export const isScriptAtMovingSlot = (error: unknown): boolean =>
  error instanceof Error && error.message.includes(SLOT_MOVES);

/** The same for any command. The driver has tried it again and given up. */
export const isMovingSlot = (error: unknown): boolean =>
  isScriptAtMovingSlot(error) || (error instanceof Error && /\bTRYAGAIN\b/.test(error.message));

/** Redis does not answer, or refuses all clients. */
export const isUnavailable = (error: unknown): boolean => classify(error)?.code === "redis_unavailable";

/** Redis is out of memory: new work is refused, work in flight goes on. */
export const isOutOfMemory = (error: unknown): boolean => classify(error)?.code === "overloaded";

/** Redis refused the command, so it has no effect. */
export const isRefused = (error: unknown): boolean => classify(error)?.executed === "no";
