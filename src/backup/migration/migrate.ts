/**
 * Moves a broker's data to another Redis, to more shards, or both, while no gateway runs. The source of a copy is only
 * read. Until the end no gateway starts on the result, so an interrupted run is repeated with the same command.
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
import { type Dumped, deleteKeys, formatOf, RestoreError, requireFree, restoreAll } from "../restore.ts";
import { type Counts, copyKeys, countKeys, dumpOf, fingerprint, identityOf, livesOf } from "./copy.ts";
import { grow, type Plan, planGrowth } from "./grow.ts";

/** A large value takes a while, and so does the disk. */
const SILENCE_MS = 60_000;
const MAX_SHARDS = 256;
const NO_AGENTS: Plan = { moved: [], stay: [] };

/**
 * `no_data`, `unreadable`, `unfinished`, `same_redis`, `wrong_shards`: nothing was changed. `differs`: the copy is not what the source
 * has. `source_changed`: the source was used meanwhile, so the copy may mix two moments; the target was emptied before.
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

/** A Redis; `isExclusive`: this process started it for itself, so no gateway uses it. */
export interface Side {
  readonly target: RedisTarget;
  readonly isExclusive: boolean;
}

export interface MigrateOptions {
  readonly source: Side;
  /** Null: only the number of shards changes. */
  readonly target: Side | null;
  /** Undefined: as many as there are. */
  readonly shards: number | undefined;
  /** Delete what is at the target. */
  readonly force: boolean;
  /** Change nothing. */
  readonly dryRun: boolean;
  readonly onProgress: (keys: number, of: number) => void;
  readonly signal: AbortSignal;
}

export interface Migrated extends Counts, Plan {
  readonly shards: { readonly from: number; readonly to: number };
}

export async function migrate(options: MigrateOptions): Promise<Migrated> {
  const source = open(options.source);
  const target = options.target && open(options.target);
  let isBegun = false;
  try {
    const plan = await check(source, target, options);
    const counts = await countKeys(source.redis);
    const { from, to } = plan.growth;
    const agents = options.shards === undefined ? NO_AGENTS : await planGrowth(source.redis, plan.growth);
    const shards = { from, to };
    if (options.dryRun) return { ...counts, ...agents, shards };
    isBegun = true;
    const done = await (target ? copy(source, target, plan, counts, options) : raise(source, plan));
    return { ...counts, ...done, shards };
  } catch (error) {
    if (error instanceof MigrationError || error instanceof RestoreError) throw error;
    options.signal.throwIfAborted();
    const reason = source.reason(target ? new Error(target.reason(error)) : error);
    throw new RestoreError(isBegun ? "failed" : "unreachable", reason);
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

interface Planned {
  readonly layout: StoredLayout;
  readonly growth: Growth;
  /** The signs of life before it was checked that no gateway is alive: if they are the same later, none has started. */
  readonly lives: { readonly source: string; readonly target: string };
}

/** Refuses what cannot or must not be done, before anything is changed. */
async function check(source: Opened, target: Opened | null, options: MigrateOptions): Promise<Planned> {
  const lives = {
    source: await livesOf(source.redis),
    target: target ? await livesOf(target.redis) : "",
  };
  const layout = await readLayout(source.redis);
  const isResumed = layout.growth !== null && target === null;
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
  // The time of the server, because ids of events are made of it.
  const [seconds = 0] = (await (target ?? source).redis.time()).map(Number);
  return { layout, lives, growth: layout.growth ?? { from, to, at: (seconds + 1) * 1_000 } };
}

async function checkTarget(source: Opened, target: Opened, { force }: MigrateOptions): Promise<void> {
  const ids = [source, target].map(({ redis }) => identityOf(redis, databaseOf(redis)));
  const [one, other] = await Promise.all(ids);
  if (one === other) throw new MigrationError("same_redis", "source and target are the same Redis");
  await requireFree(target.redis, { force, isExclusive: target.isExclusive });
  if ((await formatOf(target.redis)) < (await formatOf(source.redis))) {
    throw new RestoreError("too_old", "the new Redis is too old to read the values of the present one");
  }
}

/** The checks take a while, and until the mark a gateway could start: then the old layout is put back. */
async function requireNoneStarted(
  marked: Redis,
  old: readonly Dumped[],
  sides: readonly (readonly [Redis, string])[],
): Promise<void> {
  const now = await Promise.all(sides.map(([redis]) => livesOf(redis)));
  if (sides.every(([, before], at) => before === now[at])) return;
  if (old.length === 0) await marked.del(keys.layout);
  else await restoreAll(marked, old);
  throw new RestoreError("in_use", "a broker was started meanwhile");
}

async function copy(
  source: Opened,
  target: Opened,
  { layout, growth, lives }: Planned,
  counts: Counts,
  { onProgress, signal, shards }: MigrateOptions,
): Promise<Plan> {
  const [from, to] = [source.redis, target.redis];
  const before = [await fingerprint(from, growth.from), lives.source];
  const old = await dumpOf(to, keys.layout);
  await markRestoring(to);
  await requireNoneStarted(to, old, [
    [from, lives.source],
    [to, lives.target],
  ]);
  await deleteKeys(to, signal);
  const kept = await copyKeys(from, to, { signal, onProgress: (done) => onProgress(done, counts.keys) });
  const found = await countKeys(to);
  const after = [await fingerprint(from, growth.from), await livesOf(from)];
  if (after.join() !== before.join()) {
    throw new MigrationError(
      "source_changed",
      "a broker was started on the source while its data was copied",
    );
  }
  if (kept !== counts.keys || found.keys !== kept || found.delegations !== counts.delegations) {
    throw new MigrationError(
      "differs",
      `the source has ${counts.keys} keys and ${counts.delegations} delegations, the copy has ${found.keys} and ${found.delegations}`,
    );
  }
  if ((await fingerprint(to, growth.from)) !== before[0]) {
    throw new MigrationError(
      "differs",
      "the newest events, the due records or the agents of the copy differ",
    );
  }
  signal.throwIfAborted();
  if (shards === undefined) {
    await restoreAll(to, await dumpOf(from, keys.layout));
    return NO_AGENTS;
  }
  return grow(to, growth, layout.history);
}

async function raise({ redis }: Opened, { layout, growth, lives }: Planned): Promise<Plan> {
  const old = await dumpOf(redis, keys.layout);
  await beginGrowth(redis, growth);
  await requireNoneStarted(redis, old, [[redis, lives.source]]);
  return grow(redis, growth, layout.history);
}
