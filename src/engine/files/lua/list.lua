-- ARGV: tag, from which place, how many · Returns the bytes of the principal, then for each file, newest first: sha256,
-- size, created_at, expires_at.
local found = {redis.call('HGET', owner_key(ARGV[1]), 'bytes') or 0}
for _, sha in ipairs(redis.call('ZREVRANGE', list_key(ARGV[1]), ARGV[2], ARGV[2] + ARGV[3] - 1)) do
  local file = redis.call('HMGET', file_key(ARGV[1], sha), 'size', 'created_at', 'expires_at')
  for _, value in ipairs({sha, file[1] or 0, file[2] or 0, file[3] or 0}) do found[#found + 1] = value end
end
return found
