/** Opens connections to Redis, with limits of time. Limit: connections.ts knows which ones a gateway needs. */
import { type Cluster, Redis as OneServer, type RedisOptions } from "ioredis";
import { doublingMs } from "../util/timing.ts";
import { connectCluster } from "./cluster.ts";
import { explainSentinels, isSentinelUrl, sentinelOf, sentinelOptionsOf } from "./sentinel.ts";
import { limitSilence } from "./silence.ts";
import { clusterOf, placeOf, type RedisTarget, socketOf, urlOf } from "./target.ts";
import { isUnixUrl, unixOf } from "./unix-url.ts";

export { placeOf, type RedisTarget } from "./target.ts";

/** A connection to one server. */
export type ServerConnection = OneServer;
/** One server, or a Cluster, whose driver sends each command to the master of its keys. */
export type Redis = OneServer | Cluster;

/** `confirm`: for WAIT, which blocks the connection (replicas.ts). */
export type CommandRole = "commands" | "bulk" | "confirm";
/** `jobs`: BullMQ's wait for a job, which is longer than other blocking reads. */
export type Role = CommandRole | "blocking" | "jobs" | "subscriber";

/** How long Redis may leave a command unanswered. */
const SILENCE_MS = 2_000;
/** Longer than a blocking read waits in Redis, and longer than the pause between the subscriber's pings. */
const BLOCKING_SILENCE_MS = 2_500;
/** Longer than the wait for a job (queue/outbound-queue.ts). */
const JOBS_SILENCE_MS = 12_500;

export type Options = Omit<RedisOptions, "replyMapping">;

/** Soon, with jitter, so that gateways do not reconnect all at once. */
const retryDelay = (round: number): number => doublingMs(round, 50, 1_000) + Math.random() * 100;

export function optionsOf(role: Role): Options {
  const common: Options = {
    keepAlive: 10_000,
    connectTimeout: 2_000,
    retryStrategy: retryDelay,
    // A blocking read that was cut off is sent again. (Without this, ioredis forgets it: its promise never settles.)
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: true,
    connectionName: `errand:${role}`,
  };
  if (role !== "blocking" && role !== "jobs" && role !== "subscriber") {
    // A command whose connection broke may or may not have run: it fails at once, and its caller decides.
    return { ...common, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
  }
  // The bus subscribes again by itself, so that it knows when messages arrive again.
  return role === "subscriber" ? { ...common, autoResubscribe: false } : common;
}

/** How often connections that send little are pinged; otherwise they would not notice that they are dead. */
const PING_MS = 1_000;

export function silenceOf(role: Role): number {
  if (role === "jobs") return JOBS_SILENCE_MS;
  return role === "blocking" || role === "subscriber" ? BLOCKING_SILENCE_MS : SILENCE_MS;
}

/** `reconnectOnError`: whether an error reply of Redis calls for a new connection. */
export function connect(
  target: RedisTarget,
  role: CommandRole,
  reconnectOnError?: (error: Error) => boolean,
  silenceMs = silenceOf(role),
): Redis {
  const cluster = clusterOf(target);
  if (cluster === null) return connectServer(target, role, reconnectOnError, silenceMs);
  const redis = connectCluster(
    cluster,
    { ...optionsOf(role), ...(reconnectOnError && { reconnectOnError }) },
    silenceMs,
  );
  pingRegularly(redis, () => redis.nodes("master"));
  return redis;
}

/** The same for a target that is one server. */
export function connectServer(
  target: RedisTarget,
  role: Role,
  reconnectOnError?: (error: Error) => boolean,
  silenceMs = silenceOf(role),
): ServerConnection {
  const redis = open(target, role, reconnectOnError && { reconnectOnError });
  limitSilence(redis, silenceMs);
  if (role !== "commands" && role !== "blocking" && role !== "jobs") pingRegularly(redis, () => [redis]);
  return redis;
}

export function pingRegularly(redis: Redis, connections: () => readonly ServerConnection[]): void {
  const ping = setInterval(() => {
    for (const one of connections()) if (one.status === "ready") one.ping().catch(() => {});
  }, PING_MS).unref();
  redis.once("end", () => clearInterval(ping));
}

function open(target: RedisTarget, role: Role, more: Options | undefined): OneServer {
  const redis = openUnguarded(target, role, more);
  requireDatabase(redis);
  return redis;
}

/**
 * Closes the connection when Redis refuses the database. Otherwise ioredis would send its commands to database 0, also after
 * it connected again.
 */
function requireDatabase(redis: OneServer): void {
  const select = redis.select.bind(redis);
  redis.select = (database: number | string) => {
    const selecting = select(database);
    selecting.catch((error: unknown) => {
      if (error instanceof Error && error.name === "ReplyError") redis.stream.destroy(error);
    });
    return selecting;
  };
}

function openUnguarded(target: RedisTarget, role: Role, more: Options | undefined): OneServer {
  const base = { ...optionsOf(role), ...more, ...(target.db !== undefined && { db: target.db }) };
  const path = socketOf(target);
  const url = urlOf(target);
  if (path === null && isSentinelUrl(url)) {
    const sentinel = sentinelOf(url);
    const redis = new OneServer({ ...base, ...sentinelOptionsOf(sentinel) });
    explainSentinels(redis, sentinel);
    return redis;
  }
  if (path === null) return new OneServer(url, base);
  // A URL may have a user, a password and a database; the embedded server has its password in the target.
  const own = target.socket === undefined && isUnixUrl(url) ? unixOf(url) : {};
  return new OneServer({
    ...own,
    ...base,
    path,
    ...(target.password !== undefined && { password: target.password }),
  });
}

/** Returns the connection's last error, if there is one; the error of a command only says that it gave up. */
export function reasonOf(redis: Redis, target: RedisTarget): (error: unknown) => string {
  const cause = causeOf(redis);
  return (error) => errorText(cause(error), placeOf(target));
}

/** The same, as it was thrown. */
export function causeOf(redis: Redis): (error: unknown) => unknown {
  let last: Error | null = null;
  redis.on("error", (error: Error) => {
    last = error;
  });
  return (error) => last ?? error;
}

/** For a host with several addresses, the combined error has a code, but no text. */
export function errorText(error: unknown, place: string): string {
  if (!(error instanceof Error)) return "unknown";
  return error.message || `connect ${"code" in error ? String(error.code) : "failed"} ${place}`;
}

/** The logical database. A Cluster has only one. */
export const databaseOf = (redis: Redis): number =>
  redis instanceof OneServer ? (redis.options.db ?? 0) : 0;
