-- The delay of a ticket that returns to the queue.

function backoff_delay()
  if rule.delay == 'backoff' then
    return backoff(0, record.attempt - 2)
  elseif rule.delay == 'release' then
    record.releases = (record.releases or 0) + 1
    return backoff(cmd.delay_ms or 0, record.releases - LIMITS.free_releases - 1)
  elseif rule.delay == 'handoff' then
    record.handoffs = (record.handoffs or 0) + 1
    return backoff(0, record.handoffs - LIMITS.free_handoffs - 1)
  end
end

-- The agent's backoff for this round, or the requested delay if that is longer. Rounds below 0 have no backoff.
function backoff(asked, round)
  if round < 0 then return asked end
  local b = settings('backoff_initial_ms', 'backoff_factor', 'backoff_max_ms', 'backoff_jitter')
  local wait = math.min(b.backoff_max_ms, b.backoff_initial_ms * b.backoff_factor ^ math.min(round, 64))
  return math.max(asked, math.floor(wait * (1 + b.backoff_jitter * (2 * cmd.random - 1))))
end
