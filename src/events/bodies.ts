/**
 * Puts the bodies of artifacts, which are stored once, into the events that refer to them by place and number. A body
 * that was replaced or dropped is shown as `{artifactId, superseded: true}`. Limit: readers share a body, so it stays in
 * memory as long as one of them keeps the event.
 *
 *     refs: 1200 ["artifact",["report",1,2]]      1200 bytes; chunk 2 of place 1, of the artifact `report`
 *     →     HMGET {errand:0}:d:dlg_0_…:artifacts 1:2
 *     more: "artifact":{"artifactId":"report",…}  or {"artifactId":"report","superseded":true}
 */
import * as z from "zod";
import type { Redis } from "../redis/connect.ts";
import type { Shards } from "../redis/shards.ts";
import type { Entry } from "./entry.ts";

/** The event's member that shows the artifacts; then for each chunk: artifact id, place and number. */
const refsSchema = z.tuple(
  [z.enum(["artifact", "artifacts"])],
  z.tuple([z.string(), z.int().min(1), z.int().min(1)]),
);

function refsOf({ refs }: Entry) {
  const [shows, ...chunks] = refsSchema.parse(JSON.parse(refs.slice(refs.indexOf(" ") + 1)));
  return { shows, chunks };
}

type Chunk = ReturnType<typeof refsOf>["chunks"][number];
const fieldOf = ([, place, number]: Chunk): string => `${place}:${number}`;

function fill(entry: Entry, bodyOf: (field: string) => string | null | undefined): Entry {
  const { shows, chunks } = refsOf(entry);
  const texts = chunks.map(
    (chunk) => bodyOf(fieldOf(chunk)) ?? JSON.stringify({ artifactId: chunk[0], superseded: true }),
  );
  const member = shows === "artifact" ? `"artifact":${texts[0]}` : `"artifacts":[${texts.join(",")}]`;
  return { ...entry, refs: "", more: entry.more === "" ? member : `${member},${entry.more}` };
}

/** Shows all bodies as superseded, for a reader that needs only the artifacts' ids. */
export const withoutBodies = (entry: Entry): Entry => (entry.refs === "" ? entry : fill(entry, () => null));

interface PendingLoad {
  readonly entry: Entry;
  readonly resolve: (entry: Entry) => void;
  readonly reject: (error: unknown) => void;
}

export class Bodies {
  readonly #redis: Redis;
  readonly #shards: Shards;
  /** The loads in progress, by event: the feed passes one object to all subscribers, and the first load serves all. */
  readonly #loaded = new WeakMap<Entry, Promise<Entry>>();
  #pending: PendingLoad[] = [];

  /** `redis` is the connection for bulk reads. */
  constructor(redis: Redis, shards: Shards) {
    this.#redis = redis;
    this.#shards = shards;
  }

  /** Loads of the same tick become one read; an event without references is returned at once. */
  load(entry: Entry): Entry | Promise<Entry> {
    if (entry.refs === "") return entry;
    const known = this.#loaded.get(entry);
    if (known) return known;
    const loaded = new Promise<Entry>((resolve, reject) => {
      if (this.#pending.length === 0) queueMicrotask(() => void this.#read());
      this.#pending.push({ entry, resolve, reject });
    });
    // If the subscriber has left, nothing else handles a rejection.
    loaded.catch(() => {});
    this.#loaded.set(entry, loaded);
    return loaded;
  }

  async #read(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    const byDelegation = new Map<string, PendingLoad[]>();
    for (const one of pending) {
      const { delegation_id: id } = one.entry;
      const some = byDelegation.get(id);
      if (some) some.push(one);
      else byDelegation.set(id, [one]);
    }
    await Promise.all(
      [...byDelegation].map(async ([id, some]) => {
        try {
          const bodies = await this.#bodies(id, some);
          for (const { entry, resolve } of some) resolve(fill(entry, (field) => bodies.get(field)));
        } catch (error) {
          for (const { reject } of some) reject(error);
        }
      }),
    );
  }

  async #bodies(id: string, loads: readonly PendingLoad[]): Promise<Map<string, string | null>> {
    const fields = [...new Set(loads.flatMap(({ entry }) => refsOf(entry).chunks.map(fieldOf)))];
    const keys = this.#shards.ofId(id);
    const found = keys && fields.length > 0 ? await this.#redis.hmget(keys.artifacts(id), ...fields) : [];
    return new Map(fields.map((field, at) => [field, found[at] ?? null]));
  }
}
