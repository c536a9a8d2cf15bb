-- ARGV: tag, sha256, now · Its owner gives the file up: it goes with the last delegation that names it. Returns 0 if there
-- is no such file.
if redis.call('EXISTS', file_key(ARGV[1], ARGV[2])) == 0 then return 0 end
redis.call('HSET', file_key(ARGV[1], ARGV[2]), 'expires_at', ARGV[3])
redis.call('ZADD', due, ARGV[3], 'f ' .. ARGV[1] .. ' ' .. ARGV[2])
return 1
