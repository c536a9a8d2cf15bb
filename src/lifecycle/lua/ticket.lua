-- Tickets: hints in the agent's queue. Only a record's newest ticket counts.
-- `dlg_0_x.3` in the queue of `scout` says: the record dlg_0_x may be submitted with ticket 3. If the record has ticket 4 by
-- now, or is at work, the ticket is stale: whoever takes it drops it and takes the next.

-- Takes the first ticket of the queue, or returns a refusal. A stale ticket is removed, too. The new ticket of `moved`
-- may be the first without being in the queue; see main.lua.
function take_ticket(moved)
  local why = blocked()
  if why then return { kind = 'blocked', why = why } end
  local id, ticket
  if moved and moved.is_first then
    id, ticket = moved.id, moved.record.ticket
  else
    local kept = redis.call('HGET', sticky_key(), cmd.worker_id)
    if kept then id, ticket = take_in_turn(kept) end
    if not id then id, ticket = ticket_take(queue(), time_ms) end
  end
  if not id then return { kind = 'empty', next_due_at = ticket } end
  cmd.id, cmd.ticket, key = id, ticket, base .. ':d:' .. id
end

-- Numbers a new ticket, and sets when it is ready.
function number_ticket()
  record.ticket = record.ticket + 1
  if rule.delay == 'unchanged' then
    record.check_at = math.max(now, ticket_at()) + LIMITS.check_ms
  else
    local delay = 0
    if rule.delay == 'asked' then
      delay = cmd.not_before_at and math.max(0, cmd.not_before_at - now) or cmd.delay_ms or 0
    elseif rule.delay then
      delay = backoff_delay()
    end
    record.ready_at = now + delay
    -- Returned work comes before new work, but not for ever.
    record.returned = rule.returned and record.fence <= LIMITS.returned_leases and 1 or nil
    record.others_at = nil
    record.kept_for = nil
    local is_new = move == 'submit' and delay == 0
    if is_new and not record.line and settings('serial').serial then line_up() end
    if move == 'admit' then take_turn() end
    if rule.sticky and record.sticky_ms then
      keep_ticket(record.worker_id, record.sticky_ms)
    elseif (is_new or move == 'admit') and not record.behind and settings('sticky_ms').sticky_ms then
      keep_for_last()
    end
    local ageing = settings('ageing_ms').ageing_ms
    if ageing or record.age_at or record.aged then begin_ageing(ageing) end
    record.check_at = ticket_at() + LIMITS.check_ms
    if delay > 0 and move ~= 'submit' then show('retry_at', quoted(iso(record.ready_at))) end
    if spends or rule.needs_holder then show('attempt', digits(record.attempt)) end
    if move == 'submit' then set_deadlines(delay) end
  end
end

-- Whether a take gets the record's new ticket: it is ready, it would be the first in the queue, and the target is not
-- blocked. False when the queue cannot be read.
function is_ready_first()
  if ticket_at() > now then return false end
  local ok, is_first = pcall(ticket_is_first, queue(), time_ms)
  if not (ok and is_first) then return false end
  -- If this fails, the take fails.
  local read, why = pcall(blocked)
  return not (read and why)
end

-- Puts the record's ticket into the queue; false when the queue refuses. Then the gateway or the sweep adds it.
function offer_ticket()
  return ticket_offer(queue(), cmd.id, record.ticket, priority_now(), record.returned == 1,
    math.max(0, ticket_at() - now), time_ms, record.delegator, weight())
end

-- The priority that it has after its wait so far.
function priority_now() return record.priority + (record.aged or 0) end

-- How many turns its delegator has in the queue; returned work takes none.
function weight()
  if record.returned then return nil end
  local name = 'weight:' .. record.delegator
  return settings(name)[name] or 1
end

-- When the ticket may be taken: by any worker, if it is kept for one.
function ticket_at() return math.max(record.others_at or 0, record.ready_at) end
