-- Guards, continued: the limits of one delegation. See guards.lua.

-- Limits the number and the bytes of its events, and the updates within one second.
function guard_events()
  if rule.needs_quota and event_limit then
    return { kind = 'limit', limit = event_limit, extends_lease = rule.lease == 'extend' }
  end
  if rule.needs_pace and in_pace() and record.pace_count >= LIMITS.progress_per_second then
    return { kind = 'pace', extends_lease = true }
  end
end

function in_pace() return record.pace_at and now - record.pace_at < 1000 end

function count_pace()
  local running = in_pace()
  if not running then record.pace_at = now end
  record.pace_count = running and record.pace_count + 1 or 1
end

-- Limits the bytes of its bodies. `cmd.next_bytes`: what the move after it adds, without which it must not be made.
function guard_size()
  local added = #history + bodies + growth + (cmd.next_bytes or 0)
  if added > 0 and (record.bytes or 0) + added > LIMITS.delegation_bytes then return { kind = 'too_large' } end
end
