-- ARGV: delegation, now, 1 if the delegation is erased · It names no file any more. Files of an erased one that nothing else
-- names, and that were not uploaded again, are due: returns them.
local last = {}
for _, file in ipairs(redis.call('SMEMBERS', named_key(ARGV[1]))) do
  local tag, sha = string.match(file, '^(%S+) (%S+)$')
  local key = file_key(tag, sha)
  redis.call('ZREM', refs_key(tag, sha), ARGV[1])
  local isLast = redis.call('EXISTS', refs_key(tag, sha)) == 0 and redis.call('EXISTS', key) == 1
  if ARGV[3] == '1' and isLast and redis.call('HEXISTS', key, 'fresh') == 0 then
    redis.call('HSET', key, 'expires_at', ARGV[2])
    redis.call('ZADD', due, ARGV[2], 'f ' .. file)
    last[#last + 1] = 'f ' .. file
  end
end
redis.call('DEL', named_key(ARGV[1]))
return last
