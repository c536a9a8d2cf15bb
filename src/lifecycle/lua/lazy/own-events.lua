-- The delegation's own events: a list of ids and texts in turn, oldest first.

-- The id of the event that is `n`th from the end; false: there are fewer.
function nth_newest_event(n) return redis.call('LINDEX', key .. ':events', -2 * n) end

-- The ids of the next 100 events, or of the rest. `skip`: how many come before.
function next_event_ids(skip)
  local flat, ids = redis.call('LRANGE', key .. ':events', 2 * skip, 2 * skip + 199), {}
  for i = 1, #flat, 2 do ids[#ids + 1] = flat[i] end
  return ids
end
