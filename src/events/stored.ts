/**
 * Reading what a stream keeps: where it begins and ends, and pages of it by bytes, each looked at and read in one
 * step. Limit: an entry that is larger than a page is a page of its own.
 */
import { z } from "zod";
import type { Redis } from "../redis/connect.ts";
import { Script } from "../redis/script.ts";

/** What one read brings at most: entries, and bytes of them. */
const READ_ENTRIES = 200;
export const READ_BYTES = 1024 * 1024;

/**
 * `is_missed(key, position, oldest)`: entries behind the position were trimmed. They are: it is not the beginning,
 * nothing up to it is kept, and the stream has lost some and has had later ones. Erased events are not missed (`:erased`
 * counts them), and nothing is from the entry on that was the oldest when some were erased (`:whole`, with the number
 * of those trimmed before), while no more is trimmed. Behind a position older than the retention all that was lost
 * counts, because erased events could hide trimmed ones.
 */
const MISSED = `#!lua flags=no-writes
local function info(key)
  local found = {}
  if redis.call('EXISTS', key) == 0 then return found end
  local flat = redis.call('XINFO', 'STREAM', key)
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end
local function none_up_to(key, id) return #redis.call('XRANGE', key, '-', id, 'COUNT', 1) == 0 end
local function parts(id)
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end
local function is_before(one, other)
  local ms, seq = parts(one)
  local other_ms, other_seq = parts(other)
  return ms < other_ms or (ms == other_ms and seq < other_seq)
end
local function is_missed(key, position, oldest)
  if position == '0-0' or not none_up_to(key, position) then return false end
  local found = info(key)
  local added = found['entries-added']
  if added == nil or not is_before(position, found['last-generated-id']) then return false end
  local lost = added - found['length']
  if is_before(position, oldest) then return lost > 0 end
  local noted = redis.call('HMGET', string.match(key, '^{[^}]*}') .. ':erased', key, key .. ':whole')
  local trimmed = lost - tonumber(noted[1] or 0)
  if trimmed <= 0 then return false end
  local from, of = string.match(noted[2] or '', '^(%S+) (%S+)$')
  return not from or tonumber(of) ~= trimmed or is_before(position, from)
end
`;

/** KEYS: stream · ARGV: position, for how long entries count (ms or ''), whether the whole stream goes after that. */
const edgesScript = new Script(`${MISSED}
local key, position, kept = KEYS[1], ARGV[1], tonumber(ARGV[2])
local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
first = first and first[1] or ''
local missed, oldest = false, '0-0'
if kept then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  oldest = string.format('%.0f-0', math.max(0, now - kept))
  missed = is_missed(key, position, oldest)
  if position ~= '0-0' and not missed then
    local began = first == '' and now or parts(first)
    if is_before(position, oldest) then
      missed = #redis.call('XRANGE', key, '(' .. position, '(' .. oldest, 'COUNT', 1) > 0
    end
    -- Before it there may have been another, that went as a whole.
    if ARGV[3] == '1' and none_up_to(key, position) and parts(position) <= began - kept then missed = true end
  end
else
  missed = is_missed(key, position, oldest)
end
return { first, info(key)['last-generated-id'] or '0-0', oldest, missed and 1 or 0 }`);

/** KEYS: stream · ARGV: position, oldest id, entries, bytes · how it ended, and the entries. */
const pageScript = new Script(`${MISSED}
local key, position, oldest = KEYS[1], ARGV[1], ARGV[2]
local entries, size, most = {}, 0, tonumber(ARGV[3])
if is_missed(key, position, oldest) then return { 'gap', entries } end
local start = is_before(position, oldest) and oldest or '(' .. position
while #entries < most do
  -- A few at a time: what does not fit is read for nothing.
  local some = redis.call('XRANGE', key, start, '+', 'COUNT', 4)
  for _, entry in ipairs(some) do
    for i = 2, #entry[2], 2 do size = size + #entry[2][i] end
    if size > tonumber(ARGV[4]) and #entries > 0 then return { 'more', entries } end
    entries[#entries + 1] = entry
    start = '(' .. entry[1]
  end
  if #some < 4 then return { 'end', entries } end
end
return { 'more', entries }`);

const edgesSchema = z.tuple([z.string(), z.string(), z.string(), z.number()]);
const pageSchema = z.tuple([
  z.enum(["gap", "more", "end"]),
  z.array(z.tuple([z.string(), z.array(z.string())])),
]);

export interface Edges {
  /** The oldest entry's id; null when the stream is empty. */
  readonly first: string | null;
  /** The newest id that it ever had, `0-0` before the first. */
  readonly last: string;
  /** What is before this id is too old to be read. */
  readonly oldest: string;
  /** Entries behind the position are gone, or too old. */
  readonly missed: boolean;
}

/** Of a stream whose entries count for `keptMs`, and which `expires` as a whole so long after the last. */
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
  /** Whether the stream ends with it, goes on, or was trimmed behind the position: then there are no entries. */
  readonly is: "end" | "more" | "gap";
  readonly entries: readonly (readonly [id: string, flat: readonly string[]])[];
}

/** The next entries behind the position, those before `oldest` left out. */
export async function readPage(
  redis: Redis,
  stream: string,
  position: string,
  oldest: string,
): Promise<Page> {
  const answer = await pageScript.run(redis, [stream], [position, oldest, READ_ENTRIES, READ_BYTES]);
  const [is, entries] = pageSchema.parse(answer);
  return { is, entries };
}
