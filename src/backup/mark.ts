/** Marks the layout of a Redis, so that no gateway starts on it while a restore or a migration writes. */
import type { Redis } from "../redis/connect.ts";
import { keys } from "../redis/keys.ts";
import { dumpLayout, putLayout } from "../redis/layout.ts";
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
  readonly watched: readonly Watched[];
  /** Writes the mark. */
  readonly write: () => Promise<void>;
}

/**
 * One gateway may have started between the check and the mark. Then this puts the layout back as it was, and throws. A
 * later one finds the mark.
 */
export async function markUnlessStarted({ redis, lock, watched, write }: Marking): Promise<void> {
  const old = await dumpLayout(redis);
  await lock.renew();
  await write();
  const now = await Promise.all(watched.map((one) => signsOfLifeText(one.redis)));
  if (watched.every(({ before }, at) => before === now[at])) return;
  if (!(await putLayout(redis, lock.owner, old))) throw takenOver();
  throw new TransferError("in_use", "a broker was started meanwhile");
}

/** Differs whenever a gateway has started or works. */
export const signsOfLifeText = (redis: Redis): Promise<string> =>
  redis.zrange(keys.gateways, "0", "-1", "WITHSCORES").then((signs) => signs.join(" "));
