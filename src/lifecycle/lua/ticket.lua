-- Tickets: hints in the agent's queue. Only a record's newest ticket counts.

-- Takes the first ticket of the queue, or returns why there is none. A stale ticket is removed as well.
function take_ticket()
  local why = blocked()
  if why then return { kind = 'blocked', why = why } end
  local id, ticket = ticket_take(queue(), time_ms)
  if not id then return { kind = 'empty', next_due_at = ticket } end
  cmd.id, cmd.ticket, key = id, ticket, base .. ':d:' .. id
end

-- Numbers a new ticket, and sets when it is ready.
function number_ticket()
  if rule.queue ~= 'ticket' then return end
  put('ticket', record.ticket + 1)
  if rule.delay == 'unchanged' then
    put('check_at', math.max(now, record.ready_at) + LIMITS.check_ms)
    return
  end
  local delay = ticket_delay()
  put('ready_at', now + delay)
  put('returned', rule.returned and 1 or 0)
  put('check_at', record.ready_at + LIMITS.check_ms)
  if delay > 0 and move ~= 'submit' then show('retry_at', quoted(iso(record.ready_at))) end
  if spends or rule.lease == 'drop' then show('attempt', digits(record.attempt)) end
  if move == 'submit' then set_deadlines(delay) end
end

function ticket_delay()
  if rule.delay == 'asked' then
    return cmd.not_before_at and math.max(0, cmd.not_before_at - now) or cmd.delay_ms or 0
  elseif rule.delay == 'backoff' then
    return backoff(0, record.attempt - 2)
  elseif rule.delay == 'release' then
    put('releases', record.releases + 1)
    return backoff(cmd.delay_ms or 0, record.releases - LIMITS.free_releases - 1)
  elseif rule.delay == 'handoff' then
    put('handoffs', (record.handoffs or 0) + 1)
    return backoff(0, record.handoffs - LIMITS.free_handoffs - 1)
  end
  return 0
end

-- The agent's backoff of this round, or the delay that is asked for, if that is longer. Rounds below 0 are free.
function backoff(asked, round)
  if round < 0 then return asked end
  local b = settings('backoff_initial_ms', 'backoff_factor', 'backoff_max_ms', 'backoff_jitter')
  local wait = math.min(b.backoff_max_ms, b.backoff_initial_ms * b.backoff_factor ^ math.min(round, 64))
  return math.max(asked, math.floor(wait * (1 + b.backoff_jitter * (2 * cmd.random - 1))))
end

-- Puts the record's ticket into the queue; false when the queue refuses. Then the gateway or the sweep adds it.
function offer_ticket()
  return ticket_offer(queue(), cmd.id, record.ticket, record.priority, record.returned == 1,
    math.max(0, record.ready_at - now), time_ms)
end
