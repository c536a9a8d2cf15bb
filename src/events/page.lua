-- Reads the next entries after a position.
-- KEYS     the stream, or a delegation's events
-- ARGV     position, oldest id to return, limit in entries, limit in bytes
-- Returns  {'end' | 'more' | 'gap', entries}
local key, position, oldest = KEYS[1], ARGV[1], ARGV[2]
local entries, size, most = {}, 0, tonumber(ARGV[3])
-- A list is never trimmed.
if not is_list(key) and is_missed(key, position, oldest) then return { 'gap', entries } end
local read = own_from(key, is_before(position, oldest) and oldest or '(' .. position)
while #entries < most do
  -- A few at a time, because entries that do not fit are read for nothing.
  local count = math.min(4, most - #entries)
  local some = read(count)
  for _, entry in ipairs(some) do
    for i = 2, #entry[2], 2 do size = size + #entry[2][i] end
    if size > tonumber(ARGV[4]) and #entries > 0 then return { 'more', entries } end
    entries[#entries + 1] = entry
  end
  if #some < count then return { 'end', entries } end
end
return { 'more', entries }
