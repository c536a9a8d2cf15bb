-- ARGV: delegation, now · The delegation is erased: files that only it named are due.
for _, file in ipairs(redis.call('SMEMBERS', named_key(ARGV[1]))) do
  local tag, sha = string.match(file, '^(%S+) (%S+)$')
  redis.call('ZREM', refs_key(tag, sha), ARGV[1])
  if redis.call('EXISTS', refs_key(tag, sha)) == 0 and redis.call('EXISTS', file_key(tag, sha)) == 1 then
    redis.call('HSET', file_key(tag, sha), 'expires_at', ARGV[2])
    redis.call('ZADD', due, ARGV[2], 'f ' .. file)
  end
end
return redis.call('DEL', named_key(ARGV[1]))
