/** Marks the layout of a Redis, so that no gateway starts on it while a restore or a migration writes. */
import type { Redis } from "../redis/connect.ts";
import { keys } from "../redis/keys.ts";
import { putBackLayout } from "../redis/layout.ts";
import { TransferError } from "./transfer-error.ts";
import { type TransferLock, takenOver } from "./transfer-lock.ts";

/** A Redis that no gateway may use. */
export interface Watched {
  readonly redis: Redis;
  /** Its signs of life from before the check for gateways. */
  readonly before: string;
}

export interface Marking {
  readonly redis: Redis;
  readonly lock: TransferLock;
  /** The layout from before the checks, as `layoutText` returns it. */
  readonly layout: string;
  readonly watched: readonly Watched[];
  /** Writes the mark. Returns the layout before it, or null if this command no longer has the lock. */
  readonly mark: () => Promise<string | null>;
  /** Called before each write after the mark, and if the mark cannot be removed. */
  readonly onWrite: () => void;
}

/**
 * Marks the layout, and runs `write`, which must call `requireHeld` of the lock that it gets before each write. If anything
 * fails before the first write, the layout that the mark replaced is put back. It may be the layout of a gateway that was
 * started between the checks and the mark; that makes this command fail. A gateway that starts later finds the mark.
 */
export async function whileMarked<T>(
  { redis, lock, layout, watched, mark, onWrite }: Marking,
  write: (lock: TransferLock) => Promise<T>,
): Promise<T> {
  let isMarked = false;
  let hasWritten = false;
  const requireHeld = async () => {
    await lock.requireHeld();
    hasWritten = true;
    onWrite();
  };
  await lock.renew();
  try {
    const replaced = await mark();
    if (replaced === null) throw takenOver();
    isMarked = true;
    const now = await Promise.all(watched.map((one) => signsOfLifeText(one.redis)));
    if (replaced !== layout || watched.some(({ before }, at) => before !== now[at])) {
      throw new TransferError("in_use", "a broker was started meanwhile");
    }
    return await write({ ...lock, requireHeld });
  } catch (error) {
    if (hasWritten) throw error;
    const isBack = await putBackLayout(redis, lock.owner).catch((failure: unknown) => {
      onWrite();
      throw failure;
    });
    // Not put back: another command has marked the layout since.
    throw isBack || !isMarked ? error : takenOver();
  }
}

/** Differs whenever a gateway has started or works. */
export const signsOfLifeText = (redis: Redis): Promise<string> =>
  redis.zrange(keys.gateways, "0", "-1", "WITHSCORES").then((signs) => signs.join(" "));
