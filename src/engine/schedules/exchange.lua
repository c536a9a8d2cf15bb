-- KEYS: the schedule, due ones, its runs
-- ARGV: id, the expected seq, due at or '', the limit of runs, a run as JSON or '', then fields and values
-- Returns 1 when it was changed, 0 when somebody else changed or deleted it before.
if redis.call('HGET', KEYS[1], 'seq') ~= ARGV[2] then return 0 end
redis.call('HINCRBY', KEYS[1], 'seq', 1)
if ARGV[6] then redis.call('HSET', KEYS[1], unpack(ARGV, 6)) end
if ARGV[3] == '' then redis.call('ZREM', KEYS[2], ARGV[1]) else redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1]) end
if ARGV[5] ~= '' then
  redis.call('LPUSH', KEYS[3], ARGV[5])
  redis.call('LTRIM', KEYS[3], 0, ARGV[4] - 1)
end
return 1
