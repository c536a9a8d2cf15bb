-- Kept tickets: for a while only one worker gets the ticket. After an answer it is the worker that asked; with the agent's
-- `sticky_seconds`, the one that had the last delegation of the conversation. A hash leads from the worker's id to the
-- tickets that are kept for it. Limit: the hash is a hint; `others_at` and `kept_for` of the record decide.
--   {errand:0}:sticky:scout → laptop-7 "=\ndlg_0_a 3\n+dlg_0_b 1\n"
-- `+`: new work, which takes turns with the queue. `=`: the worker had new work that was kept, so the queue has the next turn.

function sticky_key() return base .. ':sticky:' .. (record.target or cmd.target) end

-- Keeps the new ticket for the worker. Beyond its limits, the ticket is for any worker.
function keep_ticket(worker, ms, is_new)
  local sticky = sticky_key()
  local kept = redis.call('HGET', sticky, worker) or ''
  if #kept > LIMITS.sticky_bytes then return end
  if kept == '' and redis.call('HLEN', sticky) >= LIMITS.sticky_workers and not forget_gone(sticky) then return end
  redis.call('HSET', sticky, worker, kept .. (is_new and '+' or '') .. cmd.id .. ' ' .. digits(record.ticket) .. '\n')
  if redis.call('PTTL', sticky) < ms then redis.call('PEXPIRE', sticky, digits(ms)) end
  record.others_at = now + ms
  record.kept_for = worker
  show('kept_for', cjson.encode(worker))
  show('kept_until', quoted(iso(record.others_at)))
end

-- Workers that are gone do not fetch their tickets, which others then take. Of a few workers, forgets those whose last ticket
-- is not kept any more; returns whether there was one.
function forget_gone(sticky)
  local some, forgotten = redis.call('HRANDFIELD', sticky, 10, 'WITHVALUES'), false
  for i = 1, #some, 2 do
    local id, ticket = string.match(some[i + 1], '(dlg_%S+) (%d+)\n$')
    if not id or not redis.call('ZSCORE', queue() .. ':delayed', ticket_id(id, ticket)) then
      redis.call('HDEL', sticky, some[i])
      forgotten = true
    end
  end
  return forgotten
end

-- A long conversation must not keep its worker from the work of others, so new work that is kept and the queue take turns.
function take_in_turn(kept)
  if string.sub(kept, 1, 1) ~= '=' then return take_kept(kept) end
  local rest = string.sub(kept, 3)
  if rest ~= '' and string.sub(rest, 1, 1) ~= '+' then return take_kept(rest) end
  store_kept(rest)
  local id, ticket = ticket_take(queue(), time_ms)
  if id or rest == '' then return id, ticket end
  return take_kept(rest)
end

function store_kept(kept)
  if kept == '' then
    redis.call('HDEL', sticky_key(), cmd.worker_id)
  else
    redis.call('HSET', sticky_key(), cmd.worker_id, kept)
  end
end

-- Takes the first of the tickets that are kept for this worker and still in the queue; nil when there is none.
function take_kept(kept)
  local new, id, ticket, rest = string.match(kept, '^(%+?)(%S+) (%d+)\n(.*)$')
  if ticket_remove(queue(), id, ticket) then
    store_kept((new == '+' and '=\n' or '') .. rest)
    return id, tonumber(ticket)
  end
  if rest ~= '' then return take_kept(rest) end
  store_kept('')
end

-- The last workers of an agent's conversations: a hash from the conversation to until when it is preferred, and the
-- worker. When the hash is full, it replaces the older one, so that the newest conversations are always remembered.
--   {errand:0}:last:scout → 5f3a… "1790000060000 laptop-7"
function last_key() return base .. ':last:' .. record.target end

function remember_worker()
  local last = last_key()
  if redis.call('HLEN', last) >= LIMITS.last_workers then redis.call('RENAME', last, last .. ':older') end
  redis.call('HSET', last, conversation(), digits(now + record.last_ms) .. ' ' .. record.worker_id)
  redis.call('PEXPIRE', last, digits(record.last_ms))
end

-- Keeps the new ticket for the last worker of its conversation, if that is still preferred.
function keep_for_last()
  local name = conversation()
  local last = redis.call('HGET', last_key(), name) or redis.call('HGET', last_key() .. ':older', name) or ''
  local till, worker = string.match(last, '^(%d+) (.*)$')
  if till and tonumber(till) > now then keep_ticket(worker, tonumber(till) - now, true) end
end
