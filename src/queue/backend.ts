/** How BullMQ's classes reach a queue in Redis: on connections that the gateway opened, watches and closes itself. */
import { type QueueBaseOptions, QueueKeys, RedisConnection, RedisQueueBackend } from "bullmq";
import type { Redis, ServerConnection } from "../redis/connect.ts";

/** How long a Worker waits for a job in one command; a new job ends the wait. The connection must allow it. */
export const WAIT_SECONDS = 10;
/** Pause after an error of Redis; without it, the Worker would try again at once, for as long as Redis refuses. */
export const PAUSE_MS = 1_000;

export const WORKER = {
  autorun: false,
  concurrency: 20,
  drainDelay: WAIT_SECONDS,
  /** BullMQ renews the lock while the job runs. */
  lockDuration: 30_000,
  stalledInterval: 15_000,
  // A gateway that dies is no fault of the job.
  maxStalledCount: Number.MAX_SAFE_INTEGER,
  runRetryDelay: PAUSE_MS,
} as const;

export interface QueueConnections {
  /** For commands. */
  readonly redis: Redis;
  /** A connection of its own to the master of the queue, for waiting. */
  readonly blocking: ServerConnection;
  readonly prefix: string;
}

export function backendOf({ redis, blocking, prefix }: QueueConnections) {
  const keys = new QueueKeys(prefix);
  const shared = { shared: true, skipWaitingForReady: true };
  // Without the check of the version: BullMQ keeps its failure for ever, and would never wait for a job again.
  const commands = new RedisConnection(redis, { ...shared, blocking: false, skipVersionCheck: true });
  const waits = new RedisConnection(blocking, { ...shared, blocking: true, skipVersionCheck: true });
  // Instead of those of the oldest version, which waits for whole seconds.
  const capable = () => {
    waits.capabilities = { canDoubleTimeout: true, canBlockFor1Ms: false };
  };
  waits.client.then(capable, () => {});
  // The gateway logs their errors; without a listener they would end the process.
  for (const connection of [commands, waits]) connection.on("error", () => {});
  return (name: string, options: QueueBaseOptions) => {
    const toKey = (type: string) => keys.toKey(name, type);
    return new RedisQueueBackend(commands, name, keys.getKeys(name), toKey, options, waits, false);
  };
}
