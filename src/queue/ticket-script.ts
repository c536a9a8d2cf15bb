/**
 * Tickets made and taken inside a script, so that a move and its ticket are one step. A queue as we leave it is worked
 * on directly; one that somebody set up otherwise, and delays, are left to BullMQ's own Lua.
 * Limit: both lean on BullMQ's files, arguments and keys, so BullMQ is pinned; test/queue/ticket-script.test.ts compares what
 * they and BullMQ leave in Redis.
 */
import { createRequire } from "node:module";
import { z } from "zod";
import { Script } from "../redis/script.ts";

const require = createRequire(import.meta.url);

/** One of BullMQ's scripts as a Lua function; the number is that of its keys. */
function bull(name: string, keys: number): string {
  const file: unknown = require(`bullmq/dist/cjs/scripts/${name}-${keys}.js`);
  const { content } = z.record(z.string(), z.object({ content: z.string() })).parse(file)[name] ?? {};
  if (content === undefined) throw new TypeError(`BullMQ has no script ${name}`);
  return `local function bull_${name}(KEYS, ARGV)\n${content}\nend`;
}

/**
 * Lua functions; `queue` is `<prefix>:<agent>`, `at` ms by Redis' clock:
 * `digits(number)` · a whole number as text. `redis_ms()` · Redis' time.
 * `ticket_add(queue, id, ticket, priority, returned, delay, at, push)` · twice is once; `push` is JSON text, of an outgoing
 * call only. Lower ranks run first: by priority,
 * returned work before new work of the same priority.
 * `ticket_offer(…)` · the same; false, and nothing done, when the queue refuses.
 * `ticket_take(queue, at)` · the first ticket's delegation and number, and it is gone; or nil and when the next
 * delayed one is due (nil: none is).
 */
export const TICKET_LUA = `
${bull("addPrioritizedJob", 9)}
${bull("addDelayedJob", 6)}
${bull("moveToActive", 11)}

-- A whole number written out, once: where Redis and Lua do so by themselves it costs them several times as much.
local written = {}
local function digits(number)
  local text = written[number]
  if not text then
    text = number % 1 == 0 and string.format('%d', number) or tostring(number)
    written[number] = text
  end
  return text
end

-- Redis' own time, ms: by it the queue goes.
local function redis_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- A push is told from a callback of the same number.
local function ticket_id(id, ticket, push) return id .. (push and '.p' or '.') .. digits(ticket) end

-- Nobody reads BullMQ's events; of a queue where nothing is said of them it would keep ten thousand.
local function keep_few_events(queue) redis.call('HSETNX', queue .. ':meta', 'opts.maxLenEvents', 1) end

-- Neither paused nor given a rate or a concurrency by anybody.
local known_plain
local function is_plain(queue, adding)
  if known_plain == queue then return true end
  local meta = redis.call('HMGET', queue .. ':meta', 'paused', 'concurrency', 'max', 'opts.maxLenEvents')
  if meta[1] or meta[2] or meta[3] then return false end
  if adding and not meta[4] then keep_few_events(queue) end
  known_plain = queue
  return true
end

-- BullMQ's marker and events are left out: they are for its Worker and QueueEvents, and nobody has such here.
local function ticket_add(queue, id, ticket, priority, returned, delay, at, push)
  local function k(name) return queue .. ':' .. name end
  local job = ticket_id(id, ticket, push)
  local rank = (9 - priority) * 2 + (returned and 1 or 2)
  local data = '{"delegation_id":"' .. id .. '","ticket":' .. digits(ticket) .. (push and ',"push":' .. push or '') .. '}'
  if delay == 0 and is_plain(queue, true) then
    if redis.call('EXISTS', k(job)) == 1 then return job end
    local options = '{"jobId":"' .. job .. '","attempts":0,"delay":0,"priority":' .. digits(rank) ..
      ',"removeOnComplete":true,"removeOnFail":true}'
    redis.call('HSET', k(job), 'name', 'ticket', 'data', data, 'opts', options, 'timestamp', digits(at), 'delay', '0',
      'priority', digits(rank))
    local nth = redis.call('INCR', k('pc')) % 0x100000000
    redis.call('ZADD', k('prioritized'), digits(rank * 0x100000000 + nth), job)
    return job
  end
  keep_few_events(queue)
  local options = { jobId = job, attempts = 0, delay = delay, priority = rank, removeOnComplete = true, removeOnFail = true }
  local args = { cmsgpack.pack({ k(''), job, 'ticket', at }), data, cmsgpack.pack(options) }
  if delay > 0 then
    return bull_addDelayedJob({ k('marker'), k('meta'), k('id'), k('delayed'), k('completed'), k('events') }, args)
  end
  return bull_addPrioritizedJob({ k('marker'), k('meta'), k('id'), k('prioritized'), k('delayed'), k('completed'),
    k('active'), k('events'), k('pc') }, args)
end

local function ticket_offer(queue, id, ticket, priority, returned, delay, at, push)
  local made = pcall(ticket_add, queue, id, ticket, priority, returned, delay, at, push)
  -- A job that is only half there would be taken for one that is.
  if not made then redis.call('DEL', queue .. ':' .. ticket_id(id, ticket, push)) end
  return made
end

-- The first job of a plain queue where nothing else comes before the prioritized ones: no job without a priority, and
-- no delayed one that is due. Nothing: ask BullMQ.
local function first_job(queue, at)
  if not is_plain(queue) or redis.call('EXISTS', queue .. ':wait') == 1 then return nil end
  local delayed = redis.call('ZRANGE', queue .. ':delayed', 0, 0, 'WITHSCORES')[2]
  if delayed and tonumber(delayed) < (at + 1) * 0x1000 then return nil end
  return redis.call('ZPOPMIN', queue .. ':prioritized')[1]
end

local ticket_take
function ticket_take(queue, at)
  local function k(name) return queue .. ':' .. name end
  local job = first_job(queue, at)
  if not job then
    local found = bull_moveToActive({ k('wait'), k('active'), k('prioritized'), k('events'), k('stalled'), k('limiter'),
      k('delayed'), k('paused'), k('meta'), k('pc'), k('marker') }, { k(''), at, cmsgpack.pack({ token = '0' }) })
    job = found[2]
    if job == 0 then
      -- Somebody gave the queue a rate: it is over at some time, too.
      if found[3] > 0 then return nil, at + found[3] end
      return nil, found[4] ~= 0 and found[4] or nil
    end
    -- Nobody saw it active; what BullMQ does to finish a job is to tell others of it.
    redis.call('LREM', k('active'), 1, job)
  end
  redis.call('DEL', k(job))
  local id, ticket = string.match(job, '^(dlg_[%w_]+)%.(%d+)$')
  -- Somebody else's job: worth nothing, and what stands behind it is not to wait for it.
  if not id then return ticket_take(queue, at) end
  return id, tonumber(ticket)
end`;

/** KEYS: its queue · ARGV: delegation, ticket, priority, 1 when returned, delay ms, push or ''. */
export const addTicketScript = new Script(`#!lua flags=allow-oom
${TICKET_LUA}
if not ticket_offer(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5]),
  redis_ms(),
  ARGV[6] ~= '' and ARGV[6] or nil) then
  return redis.error_reply('ERR the queue refused a ticket')
end
return 1`);
