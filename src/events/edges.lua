-- edges(key, position, kept, expires): the start and the end of a stream, and whether entries after a position are
-- gone.
-- kept     how long entries are shown, ms; nil: forever
-- expires  whether the whole stream expires after that time
-- Returns  {oldest entry's id or '', newest id ever, id before which entries are too old, 1 when entries are missed}
local function edges(key, position, kept, expires)
  local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
  first = first and first[1] or ''
  local missed, oldest = false, '0-0'
  local last = info(key)['last-generated-id'] or '0-0'
  -- A position past every event of the shard comes from a Redis that had more events, before a fail-over or a restore.
  local is_ahead = is_before(last, position)
  if is_ahead then
    local newest = info(string.match(key, '^{[^}]*}') .. ':events')['last-generated-id'] or '0-0'
    is_ahead = is_before(newest, position)
  end
  if kept then
    local now = redis_ms()
    oldest = string.format('%.0f-0', math.max(0, now - kept))
    missed = is_missed(key, position, oldest)
    if position ~= '0-0' and not missed then
      local began = first == '' and now or parts(first)
      if is_before(position, oldest) then
        missed = #redis.call('XRANGE', key, '(' .. position, '(' .. oldest, 'COUNT', 1) > 0
      end
      -- An earlier stream under this key may have expired as a whole.
      if expires and none_up_to(key, position) and parts(position) <= began - kept then missed = true end
    end
  else
    missed = is_missed(key, position, oldest)
  end
  return { first, last, oldest, (missed or is_ahead) and 1 or 0 }
end
