-- KEYS: the schedule, all schedules, those of its owner, due ones
-- ARGV: id, created at, due at or '', the limit of schedules, then fields and values
-- Returns 1 when it was created, 2 when it exists already, 0 when the owner has too many.
if redis.call('EXISTS', KEYS[1]) == 1 then return 2 end
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], 'seq', 1, unpack(ARGV, 5))
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
if ARGV[3] ~= '' then redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1]) end
return 1
