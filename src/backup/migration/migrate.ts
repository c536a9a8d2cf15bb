/**
 * Moves a broker's data to another Redis, to more shards, or both, while no gateway runs. The source of a copy is only
 * read. No gateway starts on the result before the end, so an interrupted run is repeated by the same command.
 */
import { connect, databaseOf, placeOf, type Redis, type RedisTarget, reasonOf } from "../../redis/connect.ts";
import {
  beginGrowth,
  countAlive,
  dumpLayout,
  type Growth,
  layoutText,
  markRestoring,
  putLayout,
  readLayout,
  type StoredLayout,
  whyUnreadable,
} from "../../redis/layout.ts";
import { signsOfLifeText, type Watched, whileMarked } from "../mark.ts";
import { deleteKeys, readsFormat, requireFree } from "../restore.ts";
import { TransferError } from "../transfer-error.ts";
import { requireNoTransfer, type TransferLock, takenOver, withTransferLock } from "../transfer-lock.ts";
import { type Counts, copyKeys, countAbsent, countKeys, fingerprint, formatOf, identityOf } from "./copy.ts";
import { grow, type Plan, planGrowth } from "./grow.ts";

/** A large value takes a while, and so does the disk. */
const SILENCE_MS = 60_000;
const MAX_SHARDS = 256;
const NO_AGENTS: Plan = { moved: [], stay: [] };

/**
 * `no_data`, `unreadable`, `unfinished`, `same_redis`, `replica`, `wrong_shards`: nothing was changed. `failed`: only a part
 * was copied. `growth_failed`: the data is complete, but the change to more shards is not. `differs`: the copy does not have the keys of the source. `source_changed`: the source was used meanwhile, so the copy may mix two moments; what the
 * target had is deleted.
 */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
  readonly reason:
    | "no_data"
    | "unreadable"
    | "unfinished"
    | "same_redis"
    | "replica"
    | "wrong_shards"
    | "failed"
    | "growth_failed"
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
  const source = connectSide(options.source);
  const target = options.target === null || options.target === "new" ? null : connectSide(options.target);
  const destination = target ?? source;
  let hasWritten = false;
  const onWrite = () => {
    hasWritten = true;
  };
  const prepare = async () => {
    if (target !== null) await requireNoTransfer(source.redis);
    const checked = await check(source, target, options);
    const { counts, all } = await countKeys(source.redis);
    const { from, to } = checked.growth;
    return { checked, counts, all, shards: { from, to } };
  };
  try {
    // First, because the lock of the one would be found at the other.
    await requireTwoMasters(source, target);
    if (options.dryRun) {
      await requireNoTransfer(destination.redis);
      const { checked, counts, shards } = await prepare();
      const plan = options.shards === undefined ? NO_AGENTS : await planGrowth(source.redis, checked.growth);
      return { ...counts, ...plan, shards };
    }
    return await withTransferLock(destination.redis, options.signal, async (lock) => {
      // Only now, so that of two migrations in opposite directions at least one finds the lock of the other.
      const { checked, counts, all, shards } = await prepare();
      const plan = await (target === null
        ? growInPlace(source, checked, { lock, onWrite })
        : copy(source, target, checked, { ...options, lock, onWrite, keys: all }));
      return { ...counts, ...plan, shards };
    });
  } catch (error) {
    if (error instanceof MigrationError || error instanceof TransferError) throw error;
    options.signal.throwIfAborted();
    const reason = source.reason(target ? new Error(target.reason(error)) : error);
    if (!hasWritten) throw new TransferError("unreachable", reason);
    throw new MigrationError(target === null ? "growth_failed" : "failed", reason);
  } finally {
    source.redis.disconnect();
    target?.redis.disconnect();
  }
}

interface Connected extends Side {
  readonly redis: Redis;
  readonly reason: (error: unknown) => string;
}

function connectSide(side: Side): Connected {
  const redis = connect(side.target, "commands", undefined, SILENCE_MS);
  return { ...side, redis, reason: reasonOf(redis, side.target) };
}

interface Checked {
  readonly layout: StoredLayout;
  /** The layout of the source, in the form of DUMP. */
  readonly dump: Buffer | null;
  readonly growth: Growth;
  /** The signs of life from before the check for gateways. As long as they stay the same, no gateway has started. */
  readonly signs: { readonly source: string; readonly target: string };
  /** The layout of the Redis that is going to be marked, as text. */
  readonly replaced: string;
}

/** Refuses what is impossible or would lose data, before anything is changed. */
async function check(source: Connected, target: Connected | null, options: MigrateOptions): Promise<Checked> {
  const signs = {
    source: await signsOfLifeText(source.redis),
    target: target ? await signsOfLifeText(target.redis) : "",
  };
  const replaced = await layoutText((target ?? source).redis);
  const dump = await dumpLayout(source.redis);
  const layout = await readLayout(source.redis);
  const isResumed = layout.growth !== null && options.target === null;
  if (layout.state === "none") throw new MigrationError("no_data", "there is no data of a broker");
  if (layout.state === "restoring" && !isResumed) {
    throw new MigrationError("unfinished", "a restore or a migration of this data has not finished");
  }
  const why = whyUnreadable(layout);
  if (why !== null) throw new MigrationError("unreadable", why);
  if (!source.isExclusive && (await countAlive(source.redis)) > 0) {
    throw new TransferError("in_use", "a broker uses this data, or was killed less than 15 seconds ago");
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
  if (target) await checkTarget(source, target, options);
  // The server's time, because it is in the ids of events.
  const [seconds = 0] = (await (target ?? source).redis.time()).map(Number);
  return { layout, dump, signs, replaced, growth: layout.growth ?? { from, to, at: (seconds + 1) * 1_000 } };
}

/** A copy to the master of the source would first delete the data on both. */
async function requireTwoMasters(source: Connected, target: Connected | null): Promise<void> {
  const sides = target === null ? [source] : [source, target];
  const ids = await Promise.all(sides.map(({ redis }) => identityOf(redis, databaseOf(redis))));
  const replica = sides[ids.indexOf(null)];
  if (replica) throw new MigrationError("replica", `Redis at ${placeOf(replica.target)} is a replica`);
  const [one, other] = ids;
  if (one === other) throw new MigrationError("same_redis", "source and target are the same Redis");
}

async function checkTarget(source: Connected, target: Connected, { force }: MigrateOptions): Promise<void> {
  await requireFree(target.redis, { force, isExclusive: target.isExclusive });
  if (!(await readsFormat(target.redis, await formatOf(source.redis)))) {
    throw new TransferError("too_old", "the new Redis cannot read the values of the present one");
  }
}

/** A migration that begins to write. */
interface Writing {
  readonly lock: TransferLock;
  /** See mark.ts. */
  readonly onWrite: () => void;
}

interface Copying extends Writing, Pick<MigrateOptions, "onProgress" | "shards"> {
  /** How many keys there are to copy, about. */
  readonly keys: number;
}

async function copy(
  source: Connected,
  target: Connected,
  checked: Checked,
  { lock, onWrite, ...copying }: Copying,
): Promise<Plan> {
  const [from, to] = [source.redis, target.redis];
  const { growth, signs, replaced } = checked;
  const ofSource = await fingerprint(from, growth.from);
  const watched: Watched[] = [
    { redis: from, before: signs.source },
    { redis: to, before: signs.target },
  ];
  const mark = () => markRestoring(to, lock.owner);
  return whileMarked({ redis: to, lock, layout: replaced, watched, mark, onWrite }, (marked) =>
    copyMarked({ from, to, ofSource }, checked, { ...copying, lock: marked }),
  );
}

/** `ofSource`: its fingerprint. */
interface Sides {
  readonly from: Redis;
  readonly to: Redis;
  readonly ofSource: string;
}

async function copyMarked(
  { from, to, ofSource }: Sides,
  { layout, dump, growth, signs }: Checked,
  { lock, onProgress, shards, keys }: Omit<Copying, "onWrite">,
): Promise<Plan> {
  const before = [ofSource, signs.source, dump?.toString("base64")];
  await deleteKeys(to, lock);
  await copyKeys(from, to, lock, (done) => onProgress(done, keys));
  const missing = await countAbsent(from, to, lock.signal);
  const extra = await countAbsent(to, from, lock.signal);
  const ofTarget = await fingerprint(to, growth.from);
  // After the comparison, so that nothing in it can have come from a later moment of the source.
  const after = [
    await fingerprint(from, growth.from),
    await signsOfLifeText(from),
    (await dumpLayout(from))?.toString("base64"),
  ];
  if (after.join() !== before.join()) {
    throw new MigrationError(
      "source_changed",
      "a broker or a migration was started on the source while its data was copied",
    );
  }
  if (missing > 0 || extra > 0) {
    throw new MigrationError(
      "differs",
      `the copy lacks ${missing} of the ${keys} keys, and has ${extra} that the source does not have`,
    );
  }
  if (ofTarget !== ofSource) {
    throw new MigrationError(
      "differs",
      "the newest events, the due records, the delegations or the agents of the copy differ",
    );
  }
  if (shards !== undefined) return grow(to, growth, layout, lock);
  await lock.renew();
  // The one that was compared: the source may have changed since.
  if (!(await putLayout(to, lock.owner, dump))) throw takenOver();
  return NO_AGENTS;
}

async function growInPlace(
  { redis }: Connected,
  { layout, growth, signs, replaced }: Checked,
  { lock, onWrite }: Writing,
): Promise<Plan> {
  const watched: Watched[] = [{ redis, before: signs.source }];
  const mark = () => beginGrowth(redis, growth, lock.owner);
  return whileMarked({ redis, lock, layout: replaced, watched, mark, onWrite }, (marked) =>
    grow(redis, growth, layout, marked),
  );
}
