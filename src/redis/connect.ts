/**
 * Connections to Redis: one for commands, one for bulk reads, one for each blocking read, one for pub/sub.
 * Limit: a single server (or a replicated one behind one address); no Cluster client yet.
 */
import type { Redis, RedisOptions } from "ioredis";
import { TimedRedis } from "./timed-redis.ts";

export type { Redis } from "ioredis";

export interface RedisTarget {
  /** `redis://`, `rediss://` or `unix:` URL. */
  readonly url?: string;
  /** A unix socket, for the embedded server. */
  readonly socket?: string;
  readonly password?: string;
  /** Logical database; a URL may name it too. */
  readonly db?: number;
}

export type Role = "commands" | "bulk" | "blocking" | "subscriber";

/** How long Redis may leave a command unanswered. */
const SILENCE_MS = 2_000;
/** Longer than a blocking read waits in Redis, and longer than the pause between the subscriber's pings. */
const BLOCKING_SILENCE_MS = 2_500;

type Options = Omit<RedisOptions, "replyMapping">;

function options(role: Role): Options {
  const common: Options = {
    keepAlive: 10_000,
    connectTimeout: 2_000,
    // Soon, with jitter, so that gateways do not reconnect all at once.
    retryStrategy: (round) => Math.min(50 * 2 ** Math.min(round, 5), 1_000) + Math.random() * 100,
    // A blocking read that was cut off is sent again. (Without this, ioredis forgets it: its promise never settles.)
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: true,
    connectionName: `errand:${role}`,
  };
  if (role === "commands" || role === "bulk") {
    // A command whose connection broke may or may not have run: it fails at once, and its caller decides.
    return { ...common, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
  }
  // The bus subscribes again by itself, so that it knows when messages arrive again.
  return role === "subscriber" ? { ...common, autoResubscribe: false } : common;
}

/** How often connections that send little are pinged; otherwise they would not notice that they are dead. */
const PING_MS = 1_000;

/** `reconnectOnError`: whether an error reply of Redis calls for a new connection. */
export function connect(
  target: RedisTarget,
  role: Role,
  reconnectOnError?: (error: Error) => boolean,
  silenceMs = role === "blocking" || role === "subscriber" ? BLOCKING_SILENCE_MS : SILENCE_MS,
): Redis {
  const redis = open(target, role, reconnectOnError && { reconnectOnError }).limitSilence(silenceMs);
  if (role === "bulk" || role === "subscriber") {
    const ping = setInterval(() => {
      if (redis.status === "ready") redis.ping().catch(() => {});
    }, PING_MS).unref();
    redis.once("end", () => clearInterval(ping));
  }
  return redis;
}

function open(target: RedisTarget, role: Role, more: Options | undefined): TimedRedis {
  const base = { ...options(role), ...more, ...(target.db !== undefined && { db: target.db }) };
  if (target.socket !== undefined) {
    return new TimedRedis({
      ...base,
      path: target.socket,
      ...(target.password && { password: target.password }),
    });
  }
  const url = target.url ?? "redis://127.0.0.1:6379";
  if (url.startsWith("unix:")) {
    return new TimedRedis({ ...base, path: url.slice("unix:".length).replace(/^\/\//, "") });
  }
  return new TimedRedis(url, base);
}

/** Returns the connection's last error, if there is one; the error of a command only says that it gave up. */
export function reasonOf(redis: Redis, target: RedisTarget): (error: unknown) => string {
  let last: Error | null = null;
  redis.on("error", (error: Error) => {
    last = error;
  });
  return (error) => errorText(last ?? error, placeOf(target));
}

/** Of a host with several addresses, the error for all of them has a code, but no text. */
export function errorText(error: unknown, place: string): string {
  if (!(error instanceof Error)) return "unknown";
  return error.message || `connect ${"code" in error ? String(error.code) : "failed"} ${place}`;
}

/** Host and port, or the socket, for messages. The URL may contain a password, so it is never shown. */
export function placeOf({ url, socket }: RedisTarget): string {
  if (socket !== undefined) return socket;
  const address = url ?? "redis://127.0.0.1:6379";
  if (address.startsWith("unix:"))
    return address.slice("unix:".length).replace(/^\/\//, "").replace(/\?.*/s, "");
  const parsed = URL.canParse(address) ? new URL(address) : null;
  return parsed ? `${parsed.hostname}:${parsed.port || "6379"}` : "ERRAND_REDIS_URL";
}
