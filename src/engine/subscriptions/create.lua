-- KEYS: the subscription, all of them, those of its owner, the version
-- ARGV: id, created at, the limit, then fields and values · Returns 1 when it was created, 0 when the owner has too many.
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('INCR', KEYS[4])
return 1
