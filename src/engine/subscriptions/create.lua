-- KEYS: the subscription, all of them, those of its owner, the version, the positions
-- ARGV: id, created at, the limit, how many shards follow, then for each its number and its newest event, then fields and
-- values. Where nobody reads events yet, the reader begins after these newest events.
-- Returns 1 when it was created, 0 when the owner has too many.
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[3]) then return 0 end
local at = 5
for _ = 1, ARGV[4] do
  redis.call('HSETNX', KEYS[5], ARGV[at], ARGV[at + 1])
  at = at + 2
end
redis.call('HSET', KEYS[1], unpack(ARGV, at))
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('INCR', KEYS[4])
return 1
