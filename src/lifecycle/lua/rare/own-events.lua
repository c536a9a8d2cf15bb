-- The delegation's own events: a list of ids and texts in turn, oldest first, or a stream of an older version.

function is_event_stream() return redis.call('TYPE', key .. ':events').ok == 'stream' end

-- The id of the event that is `n`th from the end; nil or false: there are fewer.
function nth_newest_event(n)
  if not is_event_stream() then return redis.call('LINDEX', key .. ':events', -2 * n) end
  local newest = redis.call('XREVRANGE', key .. ':events', '+', '-', 'COUNT', n)
  return newest[n] and newest[n][1]
end

-- The ids of the next 100 events, or of the rest. `skip`: how many come before; `after`: the last one of these.
function next_event_ids(skip, after)
  local ids = {}
  if is_event_stream() then
    local start = after and '(' .. after or '-'
    for i, entry in ipairs(redis.call('XRANGE', key .. ':events', start, '+', 'COUNT', 100)) do ids[i] = entry[1] end
  else
    local flat = redis.call('LRANGE', key .. ':events', 2 * skip, 2 * skip + 199)
    for i = 1, #flat, 2 do ids[#ids + 1] = flat[i] end
  end
  return ids
end
