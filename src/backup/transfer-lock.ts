/**
 * Lets one restore or migration at a time write to a Redis. If its process dies, the lock ends after 15 seconds, so that the
 * command can be repeated. Limit: a process that stood still for longer may write once more before it notices.
 */
import type { Redis } from "../redis/connect.ts";
import { transferKey } from "../redis/keys.ts";
import { Script } from "../redis/script.ts";
import { randomId } from "../redis/shards.ts";
import { RestoreError } from "./restore-error.ts";

const LASTS_MS = 15_000;
const RENEW_MS = 5_000;

export interface TransferLock {
  /** Aborts when the command stops, or another one has the lock. */
  readonly signal: AbortSignal;
  /** Throws if another command has the lock. */
  readonly requireHeld: () => Promise<void>;
}

/** Runs `write` while it has the lock of this Redis. */
export async function withTransferLock<T>(
  redis: Redis,
  signal: AbortSignal,
  write: (lock: TransferLock) => Promise<T>,
): Promise<T> {
  const owner = randomId(16);
  const isMine = async (script: Script) => (await script.run(redis, [transferKey], [owner, LASTS_MS])) === 1;
  if (!(await isMine(takeScript))) throw inProgress();
  const lost = new AbortController();
  const requireHeld = async () => {
    if (!(await isMine(renewScript))) lost.abort(takenOver());
    lost.signal.throwIfAborted();
  };
  // If Redis does not respond, the commands of `write` fail, too.
  const renewing = setInterval(() => void requireHeld().catch(() => undefined), RENEW_MS);
  try {
    return await write({ signal: AbortSignal.any([signal, lost.signal]), requireHeld });
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
  new RestoreError(
    "in_progress",
    "another restore or migration writes to this Redis, or was killed less than 15 seconds ago",
  );

const takenOver = () =>
  new RestoreError(
    "taken_over",
    "this command did not respond for 15 seconds, and another restore or migration has begun",
  );

/** KEYS: the lock · ARGV: the owner; how long it lasts without renewal, ms · Also works at full memory. */
const takeScript = new Script(`#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = tonumber(redis.call('HGET', KEYS[1], 'ends'))
if ends and ends > now then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'ends', now + ARGV[2])
redis.call('PEXPIRE', KEYS[1], 86400000)
return 1`);

/** The same · A late renewal is one, too, unless another command took the lock meanwhile. */
const renewScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'ends', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2])
return 1`);

/** KEYS: the lock · ARGV: the owner */
const releaseScript = new Script(`#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`);

/** KEYS: the lock */
const isHeldScript = new Script(`#!lua flags=no-writes
local ends = tonumber(redis.call('HGET', KEYS[1], 'ends'))
return ends and ends > redis.call('TIME')[1] * 1000 and 1 or 0`);
