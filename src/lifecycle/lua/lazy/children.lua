-- Waiting for children. The hash `awaits` has a field for each: its state when it ended, '' while it is live, '-' if it had
-- no record.
--   {errand:0}:d:dlg_0_x:awaits → dlg_0_a "completed", dlg_3_b "", dlg_1_c "-"

-- cmd.children: their ids; cmd.ended: the states of those that have ended already, '' for the others; cmd.needed must end.
function await_children()
  local awaits = key .. ':awaits'
  redis.call('DEL', awaits)
  local left = cmd.needed
  for i, id in ipairs(cmd.children) do
    redis.call('HSET', awaits, id, cmd.ended[i])
    if cmd.ended[i] ~= '' then left = left - 1 end
  end
  record.awaits_left = left
  record.awaits_since = now
  record.awaits_until = cmd.wait_ms and math.min(now + cmd.wait_ms, record.deadline_at) or record.deadline_at
  record.wait_hash = cmd.wait
  record.awaits_over = nil
  record.check_at = now + LIMITS.check_ms
  record.expecting = record.fence
  record.follow_at = now + LIMITS.follow_ms
  show('awaits', '{"children":' .. cmd.shown .. ',"count":' .. digits(#cmd.children) .. ',"left":' .. digits(left) ..
    ',"expires_at":' .. quoted(iso(record.awaits_until)) .. '}')
end

-- A fail-over may have lost a mark or a counted end, so the children are marked again.
function look_again()
  record.expecting = record.fence
  return claim_pending()
end

-- Counts the end of a child, or notes that the time limit passed.
function note_end()
  if cmd.child_id then
    redis.call('HSET', key .. ':awaits', cmd.child_id, cmd.child_state)
    record.awaits_left = record.awaits_left - 1
  else
    record.awaits_over = 1
    redis.call('HINCRBY', key, over_field(record.wait_hash), 1)
    show('time_limit', 'true')
  end
end

function over_field(set) return 'over:' .. set end

-- How often the command's wait has timed out.
function waits_over() return tonumber(redis.call('HGET', key, over_field(cmd.wait)) or 0) end

-- The delegation no longer waits. The states of its children stay for later leases, until it ends.
function end_wait()
  record.awaits_until = nil
  record.expecting = nil
  if finishes then redis.call('DEL', key .. ':awaits') end
end
