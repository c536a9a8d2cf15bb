/**
 * Assembles the scripts for tickets, so that a move and its ticket are one step. tickets.lua serves a plain queue itself
 * and leaves all others, and delays, to BullMQ's own Lua.
 * Limit: both depend on BullMQ's files, arguments and keys, so BullMQ is pinned; test/queue/ticket-script.test.ts compares
 * what they and BullMQ leave in Redis.
 */
import { createRequire } from "node:module";
import { z } from "zod";
import { readLua, Script } from "../redis/script.ts";
import { TIME_LUA } from "../redis/time.ts";

const requireFile = createRequire(import.meta.url);

/** One of BullMQ's scripts as a Lua function. Its number of keys is part of its file's name. */
function bull(name: string, keys: number): string {
  const file: unknown = requireFile(`bullmq/dist/cjs/scripts/${name}-${keys}.js`);
  const { content } = z.record(z.string(), z.object({ content: z.string() })).parse(file)[name] ?? {};
  if (content === undefined) throw new TypeError(`BullMQ has no script ${name}`);
  return `local function bull_${name}(KEYS, ARGV)\n${content}\nend`;
}

/** For scripts: defines `redis_ms` and the functions of tickets.lua. */
export const TICKET_LUA = [
  bull("addPrioritizedJob", 9),
  bull("addDelayedJob", 6),
  bull("moveToActive", 11),
  TIME_LUA,
  readLua("./tickets.lua", import.meta.url),
].join("\n");

/** KEYS: the queue · ARGV: delegation, ticket, priority, 1 for returned work, delay in ms, JSON of a push or ''. */
export const addTicketScript = new Script(`#!lua flags=allow-oom
${TICKET_LUA}
if not ticket_offer(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5]),
  redis_ms(), ARGV[6] ~= '' and ARGV[6] or nil) then
  return redis.error_reply('ERR the queue refused a ticket')
end
return 1`);

/** See pop-ticket.lua. Used instead of BullMQ's own pop, which uses the gateway's clock. */
export const popTicketScript = new Script(
  [
    "#!lua flags=allow-oom",
    bull("moveToActive", 11),
    TIME_LUA,
    readLua("./pop-ticket.lua", import.meta.url),
  ].join("\n"),
);

/** KEYS: queues of one shard · Returns the positions, from 1, of those that are not empty. */
export const findQueuedScript = new Script(`#!lua flags=no-writes
local found = {}
for at, queue in ipairs(KEYS) do
  if redis.call('EXISTS', queue .. ':wait', queue .. ':prioritized', queue .. ':delayed') > 0 then
    found[#found + 1] = at
  end
end
return found`);

/** See delay-ticket.lua. */
export const delayTicketScript = new Script(
  [
    "#!lua flags=allow-oom",
    bull("moveToDelayed", 11),
    TIME_LUA,
    readLua("./delay-ticket.lua", import.meta.url),
  ].join("\n"),
);
