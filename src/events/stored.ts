/**
 * Reads stored events, of streams and of single delegations: the edges of streams, and pages bounded by bytes, each
 * checked for gaps and read in one step.
 * Limit: an entry that is larger than a page is a page of its own.
 */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import { readLua, Script } from "../redis/script.ts";
import { TIME_LUA } from "../redis/time.ts";

/** The most that one read returns: entries, and their bytes. */
const READ_ENTRIES = 200;
export const READ_BYTES = 1024 * 1024;

const part = (name: string): string => readLua(`./${name}.lua`, import.meta.url);
/** For scripts that read the events of a delegation. */
export const OWN_LUA = `${part("ids")}\n${part("own")}`;
const MISSED = `#!lua flags=no-writes
${TIME_LUA}
${OWN_LUA}
${part("missed")}`;

const edgesScript = new Script(`${MISSED}\n${part("edges")}`);
const pageScript = new Script(`${MISSED}\n${part("page")}`);

const edgesSchema = z.tuple([z.string(), z.string(), z.string(), z.number()]);
const pageSchema = z.tuple([
  z.enum(["gap", "more", "end"]),
  z.array(z.tuple([z.string(), z.array(z.string())])),
  z.string(),
]);

export interface Edges {
  /** The oldest entry's id; null when the stream is empty. */
  readonly first: string | null;
  /** The newest id that it ever had, `0-0` before the first. */
  readonly last: string;
  /** Entries before this id are too old to be shown. */
  readonly oldest: string;
  /** Entries after the position are gone, or too old. */
  readonly missed: boolean;
}

/** Entries are shown for `keptMs`; with `expires`, the whole stream expires that long after its last entry. */
export async function edges(
  redis: Redis,
  stream: string,
  position = "0-0",
  { keptMs, expires = false }: { readonly keptMs?: number | undefined; readonly expires?: boolean } = {},
): Promise<Edges> {
  const answer = await edgesScript.run(redis, [stream], [position, keptMs ?? "", expires ? 1 : 0]);
  const [first, last, oldest, missed] = edgesSchema.parse(answer);
  return { first: first === "" ? null : first, last, oldest, missed: missed === 1 };
}

export interface Page {
  /**
   * Whether the stream ends with this page, continues, or was trimmed after the position; then there are no entries.
   */
  readonly kind: "end" | "more" | "gap";
  readonly entries: readonly (readonly [id: string, flat: readonly string[]])[];
  /** Where the page ends. Entries of a feed whose delegations were deleted are left out, so it may be empty. */
  readonly position: string;
}

/** The next entries after the position, without those before `oldest`. `stream` may be a delegation's events, a list. */
export async function readPage(
  redis: Redis,
  stream: string,
  position: string,
  oldest: string,
  entries = READ_ENTRIES,
): Promise<Page> {
  const answer = await pageScript.run(redis, [stream], [position, oldest, entries, READ_BYTES]);
  const [kind, found, last] = pageSchema.parse(answer);
  return { kind, entries: found, position: last };
}

/** The event of a delegation with this id; its fields as {@link readPage} returns them. */
export async function readEvent(
  redis: Redis,
  events: string,
  id: string,
): Promise<readonly string[] | undefined> {
  const [found] = (await readPage(redis, events, "0-0", id, 1)).entries;
  return found?.[0] === id ? found[1] : undefined;
}
