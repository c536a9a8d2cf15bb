/**
 * Deletes files that no delegation names, and uploads that are not continued. Any number of gateways may do so at once.
 * Limit: a file goes up to {@link LOOK_MS} after the record of its last delegation; erasing a delegation does it at once.
 */
import { PACKED } from "../../lifecycle/fields.ts";
import { warn } from "../after-move.ts";
import type { Broker, Records } from "../broker.ts";
import { nowOf, type UsesFiles } from "./files.ts";
import { scripts, textsIn } from "./scripts.ts";

/** To let files go. */
export type ReleasesFiles = UsesFiles & Records & Pick<Broker, "connections" | "log">;

const FAILED = "files not cleaned up";
const EVERY_MS = 10_000;
const AT_ONCE = 50;
/** How long a gateway has for what it took. */
const TAKEN_MS = 60_000;
/** How often the delegations that name a file are looked for. */
const LOOK_MS = 600_000;
/** How many of them at once. */
const REFS_AT_ONCE = 100;
/** The same while there are more. */
const LOOK_ON_MS = 10_000;
/** Longer than any move takes after its files are bound. */
const GRACE_MS = 3_600_000;

export class FileUpkeep {
  readonly #broker: ReleasesFiles;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<unknown> = Promise.resolve();

  /** With 0 it works only on {@link tick}. */
  constructor(broker: ReleasesFiles, everyMs = EVERY_MS) {
    this.#broker = broker;
    this.#everyMs = everyMs;
  }

  start(): void {
    if (this.#everyMs === 0 || this.#broker.files === null) return;
    this.#timer = setInterval(() => {
      void this.tick().catch((error: unknown) => warn(this.#broker, error, FAILED));
    }, this.#everyMs).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running.catch(() => {});
  }

  /** Handles everything that is due now; returns how much. */
  tick(): Promise<number> {
    const done = this.#running.catch(() => {}).then(() => settleDue(this.#broker));
    this.#running = done;
    return done;
  }
}

/** Handles everything that is due now; returns how much. */
export async function settleDue(broker: ReleasesFiles): Promise<number> {
  const { files, redis } = broker;
  if (files === null) return 0;
  for (let handled = 0; ; ) {
    const now = nowOf(broker);
    const due = textsIn(await scripts.take(redis, now, now + TAKEN_MS, AT_ONCE)) ?? [];
    await settleAll(broker, due);
    handled += due.length;
    if (due.length === 0) return handled;
  }
}

/** These alone, such as what one request made due. One that fails is due again later, and delays no other. */
export async function settleAll(broker: ReleasesFiles, due: readonly string[]): Promise<void> {
  for (const item of due) await settle(broker, item).catch((error: unknown) => warn(broker, error, FAILED));
}

async function settle(broker: ReleasesFiles, item: string): Promise<void> {
  const [kind, first = "", sha256 = ""] = item.split(" ");
  if (kind === "f") await settleFile(broker, first, sha256);
  if (kind === "d") await removeContent(broker, first);
}

async function removeContent({ files, redis }: ReleasesFiles, name: string): Promise<void> {
  await files?.store.remove(name);
  await scripts.gone(redis, name);
}

/** Lets go of delegations that are no more, then of the file if none is left. */
async function settleFile(broker: ReleasesFiles, tag: string, sha256: string): Promise<void> {
  const { redis, shards } = broker;
  const ids = textsIn(await scripts.refs(redis, tag, sha256, REFS_AT_ONCE)) ?? [];
  const isThere = await Promise.all(
    ids.map(async (id) => {
      const keys = shards.ofId(id);
      return keys !== undefined && (await redis.hexists(keys.delegation(id), PACKED)) === 1;
    }),
  );
  const there = ids.filter((_, at) => isThere[at]);
  const missing = ids.filter((_, at) => !isThere[at]);
  const now = nowOf(broker);
  const lookMs = ids.length < REFS_AT_ONCE ? LOOK_MS : missing.length > 0 ? 0 : LOOK_ON_MS;
  const name = await scripts.settle(
    redis,
    ...[tag, sha256, now, now - GRACE_MS, now + lookMs, there.length, ...there, ...missing],
  );
  if (typeof name === "string") await removeContent(broker, name);
}

/** The delegation is erased: its files go with it, unless another one names them. */
export async function releaseFiles(broker: ReleasesFiles, id: string): Promise<void> {
  if (broker.files === null) return;
  await settleAll(broker, textsIn(await scripts.unpin(broker.redis, id, nowOf(broker), 1)) ?? []);
}

/** The delegation was never created. */
export async function unnameFiles(
  broker: Pick<Broker, "clock" | "files" | "redis">,
  id: string,
): Promise<void> {
  if (broker.files !== null) await scripts.unpin(broker.redis, id, nowOf(broker), 0);
}
