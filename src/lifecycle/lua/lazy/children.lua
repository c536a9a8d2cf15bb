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
  record.awaits_until = cmd.wait_ms and math.min(now + cmd.wait_ms, record.deadline_at) or record.deadline_at
  record.awaits_over = nil
  record.expecting = record.fence
  record.follow_at = now + LIMITS.follow_ms
  show('awaits', '{"children":' .. cmd.awaits .. ',"left":' .. digits(left) .. ',"expires_at":' ..
    quoted(iso(record.awaits_until)) .. '}')
end

-- A child has ended, or the time for that is over.
function note_end()
  if cmd.child_id then
    redis.call('HSET', key .. ':awaits', cmd.child_id, cmd.child_state)
    record.awaits_left = record.awaits_left - 1
  else
    record.awaits_over = 1
    show('time_limit', 'true')
  end
  if move == 'resume' then
    record.awaits_until = nil
    record.expecting = nil
  end
end
