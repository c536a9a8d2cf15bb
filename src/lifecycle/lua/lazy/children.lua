-- Waiting for children. The hash `awaits` has a field for each: its state when it ended, or nothing while it is live.
--   {errand:0}:d:dlg_0_x:awaits → dlg_0_a "completed", dlg_3_b ""

-- cmd.children: their ids; cmd.ended: the states of those that have ended already, '' for the others; cmd.count must end.
function await_children()
  local awaits = key .. ':awaits'
  redis.call('DEL', awaits)
  local left = cmd.count
  for i, id in ipairs(cmd.children) do
    redis.call('HSET', awaits, id, cmd.ended[i])
    if cmd.ended[i] ~= '' then left = left - 1 end
  end
  record.awaits_left = left
  record.awaits_since = now
  record.awaits_until = cmd.wait_ms and math.min(now + cmd.wait_ms, record.deadline_at) or record.deadline_at
  record.awaits_set = cmd.set
  record.awaits_over = nil
  record.check_at = now + LIMITS.check_ms
  expect_children()
  show('awaits', '{"children":' .. cmd.shown .. ',"count":' .. digits(#cmd.children) .. ',"left":' .. digits(left) ..
    ',"expires_at":' .. quoted(iso(record.awaits_until)) .. '}')
end

-- The children are to be asked to report their ends.
function expect_children()
  record.expecting = record.fence
  record.follow_at = now + LIMITS.follow_ms
end

-- A fail-over may have lost that a child is expected, or that its end was counted.
function look_again()
  expect_children()
  return claim_pending()
end

-- A child has ended, or the time for that is over.
function note_end()
  if cmd.child_id then
    redis.call('HSET', key .. ':awaits', cmd.child_id, cmd.child_state)
    record.awaits_left = record.awaits_left - 1
  else
    record.awaits_over = 1
    redis.call('HINCRBY', key, over_field(record.awaits_set), 1)
    show('time_limit', 'true')
  end
end

function over_field(set) return 'over:' .. set end

-- How many waits for the command's set of children ended because their time was over.
function waits_over() return tonumber(redis.call('HGET', key, over_field(cmd.set)) or 0) end

-- The delegation no longer waits. What its children came to is kept for the next leases, until it ends.
function end_wait()
  record.awaits_until = nil
  record.expecting = nil
  if finishes then redis.call('DEL', key .. ':awaits') end
end
