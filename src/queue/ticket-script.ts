/**
 * Assembles the scripts for tickets, so that a move and its ticket are one step. tickets.lua serves a plain queue itself
 * and leaves all others, and delays, to BullMQ's own Lua.
 * Limit: both depend on BullMQ's files, arguments and keys, so BullMQ is pinned; test/queue/ticket-script.test.ts compares
 * what they and BullMQ leave in Redis.
 */
import { addDelayedJob } from "bullmq/dist/cjs/scripts/addDelayedJob-6.js";
import { addPrioritizedJob } from "bullmq/dist/cjs/scripts/addPrioritizedJob-9.js";
import { moveToActive } from "bullmq/dist/cjs/scripts/moveToActive-11.js";
import { readLua, Script } from "../redis/script.ts";
import { TIME_LUA } from "../redis/time.ts";

/** One of BullMQ's scripts as a Lua function. */
const bull = ({ name, content }: { readonly name: string; readonly content: string }): string =>
  `local function bull_${name}(KEYS, ARGV)\n${content}\nend`;

/** For scripts: defines `redis_ms` and the functions of tickets.lua. */
export const TICKET_LUA = [
  bull(addPrioritizedJob),
  bull(addDelayedJob),
  bull(moveToActive),
  TIME_LUA,
  readLua("./tickets.lua", import.meta.url),
].join("\n");

/** KEYS: the queue · ARGV: delegation, ticket, priority, 1 for returned work, delay in ms. */
export const addTicketScript = new Script(`#!lua flags=allow-oom
${TICKET_LUA}
if not ticket_offer(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5]),
  redis_ms()) then
  return redis.error_reply('ERR the queue refused a ticket')
end
return 1`);

/** KEYS: the queue · ARGV: delegation, ticket · Returns 1 if the ticket waited, and removes it. */
export const discardTicketScript = new Script(`#!lua flags=allow-oom
${TICKET_LUA}
return ticket_discard(KEYS[1], ARGV[1], tonumber(ARGV[2])) and 1 or 0`);

/** KEYS: queues of one shard · Returns the positions, from 1, of those that are not empty. */
export const findQueuedScript = new Script(`#!lua flags=no-writes
local found = {}
for at, queue in ipairs(KEYS) do
  if redis.call('EXISTS', queue .. ':wait', queue .. ':prioritized', queue .. ':delayed') > 0 then
    found[#found + 1] = at
  end
end
return found`);
