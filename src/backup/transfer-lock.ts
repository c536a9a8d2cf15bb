/**
 * Lets one restore or migration at a time write to a Redis. If its process dies, the lock ends after 15 seconds, so that the
 * command can be repeated. Limit: a process that was suspended for longer finishes its current batch before it notices.
 */
import type { Redis } from "../redis/connect.ts";
import { transferKey } from "../redis/keys.ts";
import { Script } from "../redis/script.ts";
import { randomId } from "../redis/shards.ts";
import { TransferError } from "./transfer-error.ts";

const TTL_MS = 15_000;
const RENEW_MS = 5_000;
/** A write that begins later than this after the last renewal waits for another one. */
const TRUSTED_MS = 10_000;

export interface TransferLock {
  /** Names this command in the lock, and in the mark of the layout (redis/layout.ts). */
  readonly owner: string;
  /** Aborts when the command stops, or another one has the lock. */
  readonly signal: AbortSignal;
  /**
   * For the moment before each write: throws if the command stops, or another one has the lock. Asks Redis only if the
   * last renewal is old, because this process may have been suspended.
   */
  readonly requireHeld: () => Promise<void>;
  /** The same, but always asks Redis. */
  readonly renew: () => Promise<void>;
}

/** Runs `write` while it has the lock of this Redis. */
export async function withTransferLock<T>(
  redis: Redis,
  signal: AbortSignal,
  write: (lock: TransferLock) => Promise<T>,
): Promise<T> {
  const owner = randomId(16);
  let renewedAt = 0;
  const run = async (script: Script): Promise<boolean> => {
    // Not performance.now(), which may stop while the machine is suspended.
    const now = Date.now();
    const isHeld = (await script.run(redis, [transferKey], [owner, TTL_MS])) === 1;
    if (isHeld) renewedAt = now;
    return isHeld;
  };
  if (!(await run(acquireScript))) throw inProgress();
  const lost = new AbortController();
  const stopped = AbortSignal.any([signal, lost.signal]);
  const renew = async () => {
    if (!(await run(renewScript))) lost.abort(takenOver());
    stopped.throwIfAborted();
  };
  const requireHeld = async () => {
    stopped.throwIfAborted();
    const age = Date.now() - renewedAt;
    // It is negative if the clock was set back.
    if (age < 0 || age > TRUSTED_MS) await renew();
  };
  // If Redis does not respond, the commands of `write` fail, too.
  const renewing = setInterval(() => void renew().catch(() => undefined), RENEW_MS);
  try {
    return await write({ owner, signal: stopped, requireHeld, renew });
  } finally {
    clearInterval(renewing);
    await releaseScript.run(redis, [transferKey], [owner]).catch(() => undefined);
  }
}

/** For a command that only looks at this Redis. */
export async function requireNoTransfer(redis: Redis): Promise<void> {
  if ((await isHeldScript.run(redis, [transferKey], [])) === 1) throw inProgress();
}

const inProgress = () =>
  new TransferError(
    "in_progress",
    "another restore or migration writes to this Redis, or was killed less than 15 seconds ago",
  );

/** For a command that finds the lock, or the mark of the layout, to be that of another one. */
export const takenOver = () =>
  new TransferError(
    "taken_over",
    "this command did not respond for 15 seconds, and another restore or migration has begun",
  );

/** KEYS: the lock · ARGV: the owner; how long it lasts without renewal, ms · Also works at full memory. */
const acquireScript = new Script(`#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expires_at = tonumber(redis.call('HGET', KEYS[1], 'expires_at'))
if expires_at and expires_at > now then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'expires_at', now + ARGV[2])
redis.call('PEXPIRE', KEYS[1], 86400000)
return 1`);

/** The same · A late renewal is one, too, unless another command took the lock meanwhile. */
const renewScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'expires_at', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
return 1`);

/** KEYS: the lock · ARGV: the owner */
const releaseScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`);

/** KEYS: the lock */
const isHeldScript = new Script(`#!lua flags=no-writes
local expires_at = tonumber(redis.call('HGET', KEYS[1], 'expires_at'))
return expires_at and expires_at > redis.call('TIME')[1] * 1000 and 1 or 0`);
