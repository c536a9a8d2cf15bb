-- KEYS: the schedule, all schedules, those of its owner, due ones, its runs · ARGV: id · Returns 1 when it was there.
for n = 2, 4 do redis.call('ZREM', KEYS[n], ARGV[1]) end
redis.call('DEL', KEYS[5])
return redis.call('DEL', KEYS[1])
