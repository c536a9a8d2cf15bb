-- KEYS: the subscription, all of them, those of its owner, the version, busy lanes, the positions, what time makes due
-- ARGV: id, lanes
-- Returns 1 when it was there.
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('INCR', KEYS[4])
for n = 2, #ARGV do
  redis.call('DEL', KEYS[1] .. ':' .. ARGV[n])
  redis.call('ZREM', KEYS[5], ARGV[1] .. ' ' .. ARGV[n])
end
-- The last one is gone. A later one is notified only of what happens after it.
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('DEL', KEYS[6], KEYS[7]) end
return redis.call('DEL', KEYS[1])
