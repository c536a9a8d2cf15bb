-- KEYS: the subscription, the version, busy lanes
-- ARGV: id, its settings as they were read, now, how many of the following lanes are removed, these lanes, the fields to remove
-- from `-` on, then, after another `-`, fields and values
-- Returns 1 when it was changed, 0 when somebody else changed or deleted it before. Lanes that stay and are not empty are due.
if redis.call('HGET', KEYS[1], 'settings') ~= ARGV[2] then return 0 end
local at = 5
for _ = 1, ARGV[4] do
  redis.call('DEL', KEYS[1] .. ':' .. ARGV[at])
  redis.call('ZREM', KEYS[3], ARGV[1] .. ' ' .. ARGV[at])
  at = at + 1
end
at = at + 1
while ARGV[at] ~= '-' do
  redis.call('HDEL', KEYS[1], ARGV[at])
  at = at + 1
end
redis.call('HSET', KEYS[1], unpack(ARGV, at + 1))
for n = 0, 9 do
  for _, lane in ipairs({ n, n .. '!' }) do
    if redis.call('EXISTS', KEYS[1] .. ':' .. lane) == 1 then redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1] .. ' ' .. lane) end
  end
end
redis.call('INCR', KEYS[2])
return 1
