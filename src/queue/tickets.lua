-- Tickets, made and taken inside a script. `queue` is `<prefix>:<agent>`, `at` is ms by Redis' clock.
-- ticket-script.ts defines redis_ms() and BullMQ's scripts, bull_addPrioritizedJob, bull_addDelayedJob and
-- bull_moveToActive.
--   digits(number)       a number as text
--   ticket_add(…)        adds a ticket; adding it again changes nothing
--   ticket_offer(…)      the same; returns false and adds nothing when the queue refuses
--   ticket_take(queue, at)  removes the first ticket and returns its delegation and number; with no ticket ready it
--                        returns nil and when the next delayed one is due (nil: there is none)
--   ticket_remove(queue, id, ticket)  removes this ticket, unless somebody took it
--   ticket_is_first(queue, at)  true if a ticket added now would be the first, and be taken at once

-- Formats a number, once in a script: the conversions of Redis and Lua are several times slower.
local written = {}
local function digits(number)
  local text = written[number]
  if not text then
    text = number % 1 == 0 and string.format('%d', number) or tostring(number)
    written[number] = text
  end
  return text
end

local function ticket_id(id, ticket) return id .. '.' .. digits(ticket) end

-- Nobody reads BullMQ's events; by default it keeps 10 000 for each queue.
local function keep_few_events(queue) redis.call('HSETNX', queue .. ':meta', 'opts.maxLenEvents', 1) end

-- A plain queue is not paused and has no rate and no concurrency.
local known_plain, keeps_few
local function is_plain(queue, adding)
  if known_plain ~= queue then
    local meta = redis.call('HMGET', queue .. ':meta', 'paused', 'concurrency', 'max', 'opts.maxLenEvents')
    if meta[1] or meta[2] or meta[3] then return false end
    known_plain, keeps_few = queue, meta[4]
  end
  if adding and not keeps_few then
    keep_few_events(queue)
    keeps_few = true
  end
  return true
end

-- Lower ranks run first: by priority, and returned work before new work of the same priority. BullMQ's marker and events
-- are left out: only its Worker and QueueEvents use them.
local function ticket_add(queue, id, ticket, priority, returned, delay, at)
  local function k(name) return queue .. ':' .. name end
  local job = ticket_id(id, ticket)
  local rank = (9 - priority) * 2 + (returned and 1 or 2)
  local data = '{"delegation_id":"' .. id .. '","ticket":' .. digits(ticket) .. '}'
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

local function ticket_offer(queue, id, ticket, priority, returned, delay, at)
  local made = pcall(ticket_add, queue, id, ticket, priority, returned, delay, at)
  -- A job that was written in part would count as a job.
  if not made then redis.call('DEL', queue .. ':' .. ticket_id(id, ticket)) end
  return made
end

-- True if the next job is the first of `prioritized`: the queue is plain, has no job without a priority, and has no
-- delayed job that is due.
local function is_by_priority(queue, at)
  if not is_plain(queue) or redis.call('EXISTS', queue .. ':wait') == 1 then return false end
  local delayed = redis.call('ZRANGE', queue .. ':delayed', 0, 0, 'WITHSCORES')[2]
  return not delayed or tonumber(delayed) >= (at + 1) * 0x1000
end

local function ticket_is_first(queue, at)
  return is_by_priority(queue, at) and redis.call('ZCARD', queue .. ':prioritized') == 0
end

-- Removes a ticket that nobody has taken; false when there is none.
local function ticket_remove(queue, id, ticket)
  local job = ticket_id(id, ticket)
  for _, set in ipairs({ 'delayed', 'prioritized' }) do
    if redis.call('ZREM', queue .. ':' .. set, job) == 1 then
      redis.call('DEL', queue .. ':' .. job)
      return true
    end
  end
  return false
end

local ticket_take
function ticket_take(queue, at)
  local function k(name) return queue .. ':' .. name end
  -- Otherwise BullMQ decides which is the first.
  local job = is_by_priority(queue, at) and redis.call('ZPOPMIN', queue .. ':prioritized')[1]
  if not job then
    local found = bull_moveToActive({ k('wait'), k('active'), k('prioritized'), k('events'), k('stalled'), k('limiter'),
      k('delayed'), k('paused'), k('meta'), k('pc'), k('marker') }, { k(''), at, cmsgpack.pack({ token = '0' }) })
    job = found[2]
    if job == 0 then
      -- The queue has reached its rate limit, which ends after found[3] ms.
      if found[3] > 0 then return nil, at + found[3] end
      return nil, found[4] ~= 0 and found[4] or nil
    end
    -- Nobody saw the job active, so BullMQ's way of finishing a job is not needed.
    redis.call('LREM', k('active'), 1, job)
  end
  redis.call('DEL', k(job))
  local id, ticket = string.match(job, '^(dlg_[%w_]+)%.(%d+)$')
  -- A job that is no ticket is dropped, so that it does not block the tickets behind it.
  if not id then return ticket_take(queue, at) end
  return id, tonumber(ticket)
end
