-- KEYS: the subscription, the version, busy lanes
-- ARGV: id, its settings as they were read, now, three lists, each after its length: lanes to remove, lanes to keep, fields to
-- remove; then fields and values
-- Returns 1 when it was changed, 0 when somebody else changed or deleted it since. Kept lanes that are not empty are due now.
if redis.call('HGET', KEYS[1], 'settings') ~= ARGV[2] then return 0 end
local at = 4
local function each(call)
  local first, last = at + 1, at + ARGV[at]
  for n = first, last do call(ARGV[n]) end
  at = last + 1
end
each(function(lane)
  redis.call('DEL', KEYS[1] .. ':' .. lane)
  redis.call('ZREM', KEYS[3], ARGV[1] .. ' ' .. lane)
end)
each(function(lane)
  if redis.call('EXISTS', KEYS[1] .. ':' .. lane) == 1 then redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1] .. ' ' .. lane) end
end)
each(function(field) redis.call('HDEL', KEYS[1], field) end)
redis.call('HSET', KEYS[1], unpack(ARGV, at))
redis.call('INCR', KEYS[2])
return 1
