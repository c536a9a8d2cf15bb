-- The entries of a stream, as own.lua has those of a list: returns a function that returns the next entries from `start`
-- on, at most `count`. `start` is an id, or '(' and an id, which is then left out.
local function stream_from(key, start)
  return function(count)
    local some = redis.call('XRANGE', key, start, '+', 'COUNT', count)
    if #some > 0 then start = '(' .. some[#some][1] end
    return some
  end
end

-- page(key, position, oldest, most, bytes): the next entries after a position. An entry of a feed refers to an event of a
-- delegation, which is returned in its place; if the delegation was deleted meanwhile, the entry is left out.
-- key      the stream, or a delegation's events
-- oldest   the oldest id to return
-- most     limit in entries
-- bytes    limit in bytes
-- Returns  {'end' | 'more' | 'gap', entries, the last id that was read}
local function page(key, position, oldest, most, bytes)
  local entries, size, read = {}, 0, 0
  local is_list = redis.call('TYPE', key).ok == 'list'
  -- A list is never trimmed.
  if not is_list and is_missed(key, position, oldest) then return { 'gap', entries, position } end
  local next_entries = (is_list and own_from or stream_from)(key, is_before(position, oldest) and oldest or '(' .. position)

  -- The event of an entry; nil: its delegation was deleted.
  local before_id = string.match(key, '^{[^}]*}') .. ':d:'
  local function event_of(entry)
    local id, fields = entry[1], entry[2]
    if fields[1] ~= 'r' then return entry end
    local delegation, seq = string.match(fields[2], '^(%S+) (%d+)$')
    local found = redis.call('LRANGE', before_id .. delegation .. ':events', 2 * seq - 2, 2 * seq - 1)
    return found[1] == id and { id, { 'e', found[2] } } or nil
  end

  while read < most do
    -- A few at a time, because entries that do not fit are read for nothing.
    local count = math.min(4, most - read)
    local some = next_entries(count)
    for _, entry in ipairs(some) do
      local event = event_of(entry)
      if event then
        size = size + #event[2][2]
        if size > bytes and #entries > 0 then return { 'more', entries, position } end
        entries[#entries + 1] = event
      end
      read, position = read + 1, entry[1]
    end
    if #some < count then return { 'end', entries, position } end
  end
  return { 'more', entries, position }
end
