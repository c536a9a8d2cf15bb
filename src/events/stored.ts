/**
 * Reads stored events, of streams and of single delegations: the edges of streams, and pages bounded by bytes, each
 * checked for gaps and read in one step.
 * Limit: an entry that is larger than a page is a page of its own.
 */
import * as z from "zod";
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

/** KEYS: a stream, or a delegation's events · ARGV: position, oldest id, most entries, most bytes · Returns a page; see page.lua. */
const pageScript = new Script(`${MISSED}
${part("page")}
return page(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]))`);

/**
 * KEYS: a stream · ARGV: position, how long entries are shown, 1 if the stream expires, then most entries and most bytes of
 * a page, or neither · Returns the edges (edges.lua), and, unless entries are missed, the first page if it was asked for.
 */
const edgesScript = new Script(`${MISSED}
${part("page")}
${part("edges")}
local found = edges(KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1')
if ARGV[4] and found[4] == 0 then
  found[5] = page(KEYS[1], ARGV[1], found[3], tonumber(ARGV[4]), tonumber(ARGV[5]))
end
return found`);

const pageSchema = z.tuple([
  z.enum(["gap", "more", "end"]),
  z.array(z.tuple([z.string(), z.array(z.string())])),
  z.string(),
]);
const edgesSchema = z.tuple([z.string(), z.string(), z.string(), z.number(), pageSchema.optional()]);

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

interface Shown {
  readonly keptMs?: number | undefined;
  readonly expires?: boolean;
}

/** Entries are shown for `keptMs`; with `expires`, the whole stream expires that long after its last entry. */
export const edges = async (
  redis: Redis,
  stream: string,
  position = "0-0",
  shown: Shown = {},
): Promise<Edges> => (await begin(redis, stream, position, shown, [])).edges;

/** The edges and the first page after the position, in one call; no page if entries are missed. */
export const edgesAndPage = (
  redis: Redis,
  stream: string,
  position: string,
  shown: Shown,
): ReturnType<typeof begin> => begin(redis, stream, position, shown, [READ_ENTRIES, READ_BYTES]);

async function begin(
  redis: Redis,
  stream: string,
  position: string,
  { keptMs, expires = false }: Shown,
  limits: readonly number[],
): Promise<{ readonly edges: Edges; readonly page: Page | undefined }> {
  const answer = await edgesScript.run(redis, [stream], [position, keptMs ?? "", expires ? 1 : 0, ...limits]);
  const [first, last, oldest, missed, page] = edgesSchema.parse(answer);
  return {
    edges: { first: first === "" ? null : first, last, oldest, missed: missed === 1 },
    page: page && toPage(page),
  };
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
  return toPage(pageSchema.parse(answer));
}

const toPage = ([kind, entries, position]: z.infer<typeof pageSchema>): Page => ({ kind, entries, position });

/** The event of a delegation with this id; its fields as {@link readPage} returns them. */
export async function readEvent(
  redis: Redis,
  events: string,
  id: string,
): Promise<readonly string[] | undefined> {
  const [found] = (await readPage(redis, events, "0-0", id, 1)).entries;
  return found?.[0] === id ? found[1] : undefined;
}
