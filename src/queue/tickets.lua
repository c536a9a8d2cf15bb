-- Tickets, made and taken inside a script. `queue` is `<shard>:q:<agent>`, `at` is ms by Redis' clock.
-- ticket-script.ts defines redis_ms() and BullMQ's scripts, bull_addPrioritizedJob, bull_addDelayedJob and
-- bull_moveToActive.
--   digits(number)       a number as text
--   ticket_add(…)        adds a ticket; adding it again changes nothing
--   ticket_offer(…)      the same; returns false and adds nothing when the queue refuses
--   ticket_take(queue, at)  removes the first ticket and returns its delegation and number; with no ticket ready it
--                        returns nil and when the next delayed one is due (nil: there is none)
--   ticket_raise(…)      moves a ticket to another priority, if it is in the queue
--   ticket_remove(queue, id, ticket)  removes this ticket, unless somebody took it
--   ticket_discard(queue, id, ticket)  the same, for a delegation that is no longer wanted
--   ticket_is_first(queue, at)  true if a ticket added now would be the first, and be taken at once
--
-- The order is BullMQ's own: the score in `prioritized` is a priority times 2^32, plus 32 bits. Lower scores run first. A band
-- of 2^16 priorities belongs to each rank: by the delegation's priority, and returned work before new work of the same one.
-- So a band has 48 bits.
--   Returned work  is first in, first out.
--   New work       takes turns (start-time fair queueing). A delegator's next ticket is one turn after its last one, or at
--                  the band's first waiting ticket if that is later: nobody saves turns. Delegators at the same turn are
--                  first in, first out. The turns key has the next turn of each delegator; see next_turn().
-- Tickets of brokers without turns have the ranks themselves as priorities, and so run before all others.

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

-- The scores of a band; a turn at weight 1; between two delegators at the same turn; delegators whose turns are kept.
local BAND, TURN, BEHIND, MAX_TURNS = 0x1000000000000, 0x10000, 0x10, 10000

local function turns_key(queue) return (string.gsub(queue, ':q:', ':turns:', 1)) end

-- The delegator of a job's delegation; nil when the job is no ticket or the delegation is deleted.
local function delegator_of(queue, job)
  local id = string.match(job, '^(dlg_[%w_]+)%.%d+$')
  local packed = id and redis.call('HGET', string.match(queue, '^(.-):q:') .. ':d:' .. id, 'packed')
  return packed and cmsgpack.unpack(packed).delegator
end

-- How far apart the tickets of a delegator are. `weight`: that of the agent's settings, if it is known.
local function turn_of(queue, delegator, weight)
  weight = weight or redis.call('HGET', (string.gsub(queue, ':q:', ':agent:', 1)), 'weight:' .. delegator)
  return math.floor(TURN / (tonumber(weight or '') or 1))
end

-- A ticket leaves its band without being taken. If its delegator has a next turn there, it is now too late.
local function note_removal(queue, job, score)
  local rank = math.floor(tonumber(score) / BAND)
  local delegator = rank % 2 == 0 and delegator_of(queue, job)
  local own = delegator and digits(rank) .. ' ' .. delegator
  local turn = own and redis.call('ZSCORE', turns_key(queue), own)
  if not turn then return end
  redis.call('ZADD', turns_key(queue), turn, '-' .. own)
  redis.call('ZADD', turns_key(queue), 'LT', score, '=' .. own)
end

-- The next turn of a delegator that removed waiting tickets: one turn after its last waiting ticket, or the turn of the first
-- ticket that it removed (`free`) if that is later; nil if it begins with the others. So nobody gets an earlier turn than
-- without the removed tickets. Looks at 100 tickets; beyond that, the stored turn is kept.
local function turn_after_removals(queue, rank, delegator, turn, at, free)
  local own = digits(rank) .. ' ' .. delegator
  redis.call('ZREM', turns_key(queue), '-' .. own, '=' .. own)
  local from = math.max(at, free)
  local later = redis.call('ZRANGE', queue .. ':prioritized', '(' .. digits(turn), digits(from), 'BYSCORE', 'REV',
    'LIMIT', 0, 100, 'WITHSCORES')
  for i = 1, #later, 2 do
    if delegator_of(queue, later[i]) == delegator then return tonumber(later[i + 1]) + turn_of(queue, delegator) end
  end
  if #later == 200 then return turn end
  return free > at and free or nil
end

-- The score of a new ticket. Members of the turns key, each with a score of the band: `<rank> <delegator>` is its next turn,
-- `<rank>` the newest ticket of a delegator that had none; `-<rank> <delegator>` says that it removed tickets, and
-- `=<rank> <delegator>` has the turn of the first of these. Nothing is kept for a band's only ticket.
local function next_turn(queue, rank, delegator, weight)
  local from, turns = rank * BAND, turns_key(queue)
  local till = '(' .. digits(from + BAND)
  local first = redis.call('ZRANGE', queue .. ':prioritized', digits(from), till, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  if not first[1] then
    redis.call('ZREMRANGEBYSCORE', turns, digits(from), till)
    -- BullMQ puts jobs back at the beginning of their priority.
    return from + TURN
  end
  local at, band, own = tonumber(first[2]), digits(rank), digits(rank) .. ' ' .. delegator
  local known = redis.call('ZMSCORE', turns, band, own, '-' .. own, '=' .. own)
  local newest, turn = tonumber(known[1] or ''), tonumber(known[2] or '')
  if known[3] and turn and turn > at then
    turn = turn_after_removals(queue, rank, delegator, turn, at, tonumber(known[4] or '') or 0)
  end
  if not newest then
    -- The first ticket was the only one.
    newest = at
    local other = delegator_of(queue, first[1]) or ''
    local after = at + turn_of(queue, other)
    redis.call('ZADD', turns, digits(at), band, digits(after), band .. ' ' .. other)
    if other == delegator then turn = after end
  end
  if not turn or turn <= at then
    redis.call('ZREMRANGEBYSCORE', turns, digits(from), '(' .. digits(at))
    turn = math.min(math.max(at, newest) + BEHIND, from + BAND - 1)
    redis.call('ZADD', turns, digits(turn), band)
    if redis.call('ZCARD', turns) >= MAX_TURNS then return turn end
  end
  turn = math.min(turn, from + BAND - 1)
  redis.call('ZADD', turns, digits(math.min(turn + turn_of(queue, delegator, weight), from + BAND - 1)), own)
  return turn
end

local function score_of(queue, rank, delegator, weight)
  if rank % 2 == 0 then return next_turn(queue, rank, delegator, weight) end
  return rank * BAND + redis.call('INCR', queue .. ':pc') % 0x100000000
end

local function rank_of(priority, returned) return (9 - priority) * 2 + (returned and 1 or 2) end

local function priority_of(score) return math.floor(score / 0x100000000) end

-- BullMQ's marker and events are left out in a plain queue: only its Worker and QueueEvents use them.
local function ticket_add(queue, id, ticket, priority, returned, delay, at, delegator, weight)
  local function k(name) return queue .. ':' .. name end
  local job = ticket_id(id, ticket)
  local rank = rank_of(priority, returned)
  local data = '{"delegation_id":"' .. id .. '","ticket":' .. digits(ticket) .. '}'
  local plain = delay == 0 and is_plain(queue, true)
  if redis.call('EXISTS', k(job)) == 1 then return job end
  -- A delayed ticket gets its turn when it is ready.
  local score = delay > 0 and rank * BAND or score_of(queue, rank, delegator or delegator_of(queue, job) or '', weight)
  local level = priority_of(score)
  if plain then
    local options = '{"jobId":"' .. job .. '","attempts":0,"delay":0,"priority":' .. digits(level) ..
      ',"removeOnComplete":true,"removeOnFail":true}'
    redis.call('HSET', k(job), 'name', 'ticket', 'data', data, 'opts', options, 'timestamp', digits(at), 'delay', '0',
      'priority', digits(level))
    redis.call('ZADD', k('prioritized'), digits(score), job)
    return job
  end
  keep_few_events(queue)
  local options = { jobId = job, attempts = 0, delay = delay, priority = level, removeOnComplete = true, removeOnFail = true }
  local args = { cmsgpack.pack({ k(''), job, 'ticket', at }), data, cmsgpack.pack(options) }
  if delay > 0 then
    return bull_addDelayedJob({ k('marker'), k('meta'), k('id'), k('delayed'), k('completed'), k('events') }, args)
  end
  bull_addPrioritizedJob({ k('marker'), k('meta'), k('id'), k('prioritized'), k('delayed'), k('completed'),
    k('active'), k('events'), k('pc') }, args)
  redis.call('ZADD', k('prioritized'), 'XX', digits(score), job)
  return job
end

local function ticket_offer(queue, id, ticket, ...)
  local made = pcall(ticket_add, queue, id, ticket, ...)
  -- A job that was written in part would count as a job.
  if not made then redis.call('DEL', queue .. ':' .. ticket_id(id, ticket)) end
  return made
end

-- Gives a waiting ticket its place at another priority; a delayed one gets it when it is ready.
local function ticket_raise(queue, id, ticket, priority, returned, delegator, weight)
  local job, rank = ticket_id(id, ticket), rank_of(priority, returned)
  local waits = redis.call('ZSCORE', queue .. ':prioritized', job)
  if not waits and not redis.call('ZSCORE', queue .. ':delayed', job) then return end
  if waits then note_removal(queue, job, waits) end
  local score = waits and score_of(queue, rank, delegator, weight) or rank * BAND
  redis.call('HSET', queue .. ':' .. job, 'priority', digits(priority_of(score)))
  if waits then redis.call('ZADD', queue .. ':prioritized', 'XX', digits(score), job) end
end

-- When the next delayed job is due, as BullMQ scores it; nil: there is none, or it is not due.
local function is_due(queue, at)
  local delayed = redis.call('ZRANGE', queue .. ':delayed', 0, 0, 'WITHSCORES')[2]
  return delayed and tonumber(delayed) < (at + 1) * 0x1000
end

-- True if the next job is the first of `prioritized`: the queue is plain and has no job without a priority. Delayed jobs that
-- are due come first.
local function is_by_priority(queue) return is_plain(queue) and redis.call('EXISTS', queue .. ':wait') == 0 end

local function ticket_is_first(queue, at)
  return is_by_priority(queue) and not is_due(queue, at) and redis.call('ZCARD', queue .. ':prioritized') == 0
end

-- Gives their turns to delayed tickets that are due: BullMQ would score them by its own counter. Returns true if other jobs
-- are due, which BullMQ moves.
local function move_due(queue, at)
  local function k(name) return queue .. ':' .. name end
  local others = false
  for _, job in ipairs(redis.call('ZRANGE', k('delayed'), 0, digits((at + 1) * 0x1000 - 1), 'BYSCORE', 'LIMIT', 0, 500)) do
    local delegator = delegator_of(queue, job)
    local priority = delegator and tonumber(redis.call('HGET', k(job), 'priority') or '')
    if priority then
      -- Brokers without turns store the rank itself.
      local rank = priority < 0x10000 and priority or math.floor(priority / 0x10000)
      redis.call('ZREM', k('delayed'), job)
      local score = score_of(queue, rank, delegator)
      redis.call('HSET', k(job), 'delay', '0', 'priority', digits(priority_of(score)))
      redis.call('ZADD', k('prioritized'), digits(score), job)
    else
      others = true
    end
  end
  return others
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

-- The same for good: the next turn of its delegator is looked up again.
local function ticket_discard(queue, id, ticket)
  local job = ticket_id(id, ticket)
  local score = redis.call('ZSCORE', queue .. ':prioritized', job)
  if score then note_removal(queue, job, score) end
  return ticket_remove(queue, id, ticket)
end

local ticket_take
function ticket_take(queue, at)
  local function k(name) return queue .. ':' .. name end
  local others_due = is_due(queue, at) and move_due(queue, at)
  -- Otherwise BullMQ decides which is the first.
  local by_priority = is_by_priority(queue) and not others_due
  local job = by_priority and redis.call('ZPOPMIN', queue .. ':prioritized')[1]
  if not job then
    if by_priority then redis.call('DEL', turns_key(queue)) end
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
