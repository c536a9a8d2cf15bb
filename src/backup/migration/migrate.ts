/**
 * Moves a broker's data to another Redis, to more shards, or both, while no gateway runs. The source of a copy is only
 * read. No gateway starts on the result before the end, so an interrupted run is repeated by the same command.
 */
import { connect, databaseOf, type Redis, type RedisTarget, reasonOf } from "../../redis/connect.ts";
import { keys } from "../../redis/keys.ts";
import {
  beginGrowth,
  countAlive,
  type Growth,
  LayoutError,
  markRestoring,
  readLayout,
  requireReadable,
  type StoredLayout,
} from "../../redis/layout.ts";
import { type Dumped, deleteKeys, readsFormat, requireFree, restoreAll } from "../restore.ts";
import { RestoreError } from "../restore-error.ts";
import { requireNoTransfer, type TransferLock, withTransferLock } from "../transfer-lock.ts";
import {
  type Counts,
  copyKeys,
  countKeys,
  countMissing,
  dumpOf,
  fingerprint,
  formatOf,
  identityOf,
  layoutText,
  signsOfLife,
} from "./copy.ts";
import { grow, type Plan, planGrowth } from "./grow.ts";

/** A large value takes a while, and so does the disk. */
const SILENCE_MS = 60_000;
const MAX_SHARDS = 256;
const NO_AGENTS: Plan = { moved: [], stay: [] };

/**
 * `no_data`, `unreadable`, `unfinished`, `same_redis`, `wrong_shards`: nothing was changed. `differs`: the copy does not
 * have the keys of the source. `source_changed`: the source was used meanwhile, so the copy may mix two moments; what the
 * target had is deleted.
 */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
  readonly reason:
    | "no_data"
    | "unreadable"
    | "unfinished"
    | "same_redis"
    | "wrong_shards"
    | "differs"
    | "source_changed";

  constructor(reason: MigrationError["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface Side {
  readonly target: RedisTarget;
  /** This process started the Redis for itself, so no gateway uses it. */
  readonly isExclusive: boolean;
}

export interface MigrateOptions {
  readonly source: Side;
  /** Null: only the number of shards changes. `new`, only for a dry run: a private Redis that does not exist yet. */
  readonly target: Side | "new" | null;
  /** Undefined: the number does not change. */
  readonly shards: number | undefined;
  /** Delete the broker's data that is at the target. */
  readonly force: boolean;
  /** Write nothing; only check, and return what would be done. */
  readonly dryRun: boolean;
  readonly onProgress: (keys: number, of: number) => void;
  readonly signal: AbortSignal;
}

export interface Migrated extends Counts, Plan {
  readonly shards: { readonly from: number; readonly to: number };
}

export async function migrate(options: MigrateOptions): Promise<Migrated> {
  const source = open(options.source);
  const target = options.target === null || options.target === "new" ? null : open(options.target);
  const written = target ?? source;
  let hasWritten = false;
  const prepare = async () => {
    const checked = await check(source, target, options);
    const counts = await countKeys(source.redis);
    const { from, to } = checked.growth;
    return { checked, counts, shards: { from, to } };
  };
  try {
    if (target !== null) await requireNoTransfer(source.redis);
    if (options.dryRun) {
      await requireNoTransfer(written.redis);
      const { checked, counts, shards } = await prepare();
      const plan = options.shards === undefined ? NO_AGENTS : await planGrowth(source.redis, checked.growth);
      return { ...counts, ...plan, shards };
    }
    return await withTransferLock(written.redis, options.signal, async (lock) => {
      const { checked, counts, shards } = await prepare();
      hasWritten = true;
      const plan = await (target === null
        ? growInPlace(source, checked, lock)
        : copy(source, target, checked, counts, lock, options));
      return { ...counts, ...plan, shards };
    });
  } catch (error) {
    if (error instanceof MigrationError || error instanceof RestoreError) throw error;
    options.signal.throwIfAborted();
    const reason = source.reason(target ? new Error(target.reason(error)) : error);
    throw new RestoreError(hasWritten ? "failed" : "unreachable", reason);
  } finally {
    source.redis.disconnect();
    target?.redis.disconnect();
  }
}

interface Opened extends Side {
  readonly redis: Redis;
  readonly reason: (error: unknown) => string;
}

function open(side: Side): Opened {
  const redis = connect(side.target, "commands", undefined, SILENCE_MS);
  return { ...side, redis, reason: reasonOf(redis, side.target) };
}

interface Checked {
  readonly layout: StoredLayout;
  readonly growth: Growth;
  /** The signs of life from before the check for gateways. As long as they stay the same, no gateway has started. */
  readonly signs: { readonly source: string; readonly target: string };
}

/** Refuses what is impossible or would lose data, before anything is changed. */
async function check(source: Opened, target: Opened | null, options: MigrateOptions): Promise<Checked> {
  const signs = {
    source: await signsOfLife(source.redis),
    target: target ? await signsOfLife(target.redis) : "",
  };
  const layout = await readLayout(source.redis);
  const isResumed = layout.growth !== null && options.target === null;
  if (layout.state === "none") throw new MigrationError("no_data", "there is no data of a broker");
  if (layout.state === "restoring" && !isResumed) {
    throw new MigrationError("unfinished", "a restore or a migration of this data has not finished");
  }
  if (!source.isExclusive && (await countAlive(source.redis)) > 0) {
    throw new RestoreError("in_use", "a broker uses this data, or was killed less than 15 seconds ago");
  }
  const from = layout.growth?.from ?? layout.shards;
  const to = options.shards ?? layout.growth?.to ?? from;
  if (layout.growth && to !== layout.growth.to) {
    throw new MigrationError("unfinished", `a change to ${layout.growth.to} shards has not finished`);
  }
  if (to < from || to > MAX_SHARDS) {
    throw new MigrationError(
      "wrong_shards",
      to < from
        ? `the data has ${from} shards, and ids of delegations name their shard, so there cannot be fewer`
        : `there can be at most ${MAX_SHARDS} shards`,
    );
  }
  await requireReadable(source.redis).catch((error: unknown) => {
    throw error instanceof LayoutError ? new MigrationError("unreadable", error.message) : error;
  });
  if (target) await checkTarget(source, target, options);
  // The server's time, because it is in the ids of events.
  const [seconds = 0] = (await (target ?? source).redis.time()).map(Number);
  return { layout, signs, growth: layout.growth ?? { from, to, at: (seconds + 1) * 1_000 } };
}

async function checkTarget(source: Opened, target: Opened, { force }: MigrateOptions): Promise<void> {
  const ids = [source, target].map(({ redis }) => identityOf(redis, databaseOf(redis)));
  const [one, other] = await Promise.all(ids);
  if (one === other) throw new MigrationError("same_redis", "source and target are the same Redis");
  await requireFree(target.redis, { force, isExclusive: target.isExclusive });
  if (!(await readsFormat(target.redis, await formatOf(source.redis)))) {
    throw new RestoreError("too_old", "the new Redis cannot read the values of the present one");
  }
}

/**
 * The mark keeps gateways from starting, but one may have started between the check and the mark. Then this puts the
 * layout back as it was, and throws.
 */
async function requireNoneStarted(
  marked: Redis,
  old: readonly Dumped[],
  sides: readonly (readonly [redis: Redis, before: string])[],
): Promise<void> {
  const now = await Promise.all(sides.map(([redis]) => signsOfLife(redis)));
  if (sides.every(([, before], at) => before === now[at])) return;
  if (old.length === 0) await marked.del(keys.layout);
  else await restoreAll(marked, old);
  throw new RestoreError("in_use", "a broker was started meanwhile");
}

async function copy(
  source: Opened,
  target: Opened,
  { layout, growth, signs }: Checked,
  counts: Counts,
  { signal, requireHeld }: TransferLock,
  { onProgress, shards }: MigrateOptions,
): Promise<Plan> {
  const [from, to] = [source.redis, target.redis];
  const ofSource = await fingerprint(from, growth.from);
  const before = [ofSource, signs.source, await layoutText(from)];
  const old = await dumpOf(to, keys.layout);
  await markRestoring(to);
  await requireNoneStarted(to, old, [
    [from, signs.source],
    [to, signs.target],
  ]);
  await deleteKeys(to, signal);
  await copyKeys(from, to, { signal, onProgress: (done) => onProgress(done, counts.keys) });
  const missing = await countMissing(from, to, signal);
  const extra = await countMissing(to, from, signal);
  const ofTarget = await fingerprint(to, growth.from);
  // After the comparison, so that nothing in it can have come from a later moment of the source.
  const after = [await fingerprint(from, growth.from), await signsOfLife(from), await layoutText(from)];
  if (after.join() !== before.join()) {
    throw new MigrationError(
      "source_changed",
      "a broker or a migration was started on the source while its data was copied",
    );
  }
  if (missing > 0 || extra > 0) {
    throw new MigrationError(
      "differs",
      `the copy lacks ${missing} of the ${counts.keys} keys, and has ${extra} that the source does not have`,
    );
  }
  if (ofTarget !== ofSource) {
    throw new MigrationError(
      "differs",
      "the newest events, the due records, the delegations or the agents of the copy differ",
    );
  }
  signal.throwIfAborted();
  if (shards !== undefined) return grow(to, growth, layout.history, { signal, requireHeld });
  await requireHeld();
  await restoreAll(to, await dumpOf(from, keys.layout));
  return NO_AGENTS;
}

async function growInPlace(
  { redis }: Opened,
  { layout, growth, signs }: Checked,
  lock: TransferLock,
): Promise<Plan> {
  const old = await dumpOf(redis, keys.layout);
  await beginGrowth(redis, growth);
  await requireNoneStarted(redis, old, [[redis, signs.source]]);
  return grow(redis, growth, layout.history, lock);
}
