-- Ageing: with the agent's `priority_ageing_seconds`, work that waits goes as if its priority were one higher, again and
-- again, up to 9. The delegation's own `priority` stays. Each new wait begins with it.

-- Begins to wait. Whoever waits for its turn in its conversation has no ticket that could move up.
function begin_ageing(ageing_ms)
  record.aged = nil
  record.age_at = ageing_ms and record.priority < 9 and not record.behind and record.ready_at + ageing_ms or nil
end

-- Moves the ticket up. After an outage of the broker this makes several steps at once. An error in the queue leaves the ticket
-- where it is.
function raise_ticket()
  local name = 'weight:' .. record.delegator
  local ageing = settings('ageing_ms', name).ageing_ms
  if not ageing then
    record.age_at = nil
    return
  end
  local steps = 1 + math.floor((now - record.age_at) / ageing)
  record.aged = math.min(9 - record.priority, (record.aged or 0) + steps)
  record.age_at = priority_now() < 9 and record.age_at + steps * ageing or nil
  pcall(ticket_raise, queue(), cmd.id, record.ticket, priority_now(), record.returned == 1, record.delegator, weight())
end

-- For work that waited when the agent had no ageing yet.
function check_ageing()
  if record.age_at or record.aged then return end
  begin_ageing(settings('ageing_ms').ageing_ms)
end
