-- ARGV: tag, sha256, now, before when a missing record counts, when to look again, how many are there, then the
-- delegations that are there, and those that are not · A file that no delegation names and whose time is up is deleted: returns the
-- name of its content, which follows.
local tag, sha, now = ARGV[1], ARGV[2], tonumber(ARGV[3])
local refs, file, item = refs_key(tag, sha), file_key(tag, sha), 'f ' .. tag .. ' ' .. sha
for at = 7, #ARGV do
  local seen = redis.call('ZSCORE', refs, ARGV[at])
  if seen and at < 7 + tonumber(ARGV[6]) then redis.call('ZADD', refs, 'XX', now, ARGV[at])
  elseif seen and tonumber(seen) < tonumber(ARGV[4]) then
    redis.call('ZREM', refs, ARGV[at])
    redis.call('SREM', named_key(ARGV[at]), tag .. ' ' .. sha)
  end
end
local name, size, expires = unpack(redis.call('HMGET', file, 'name', 'size', 'expires_at'))
if not name then return redis.call('ZREM', due, item) end
if redis.call('EXISTS', refs) == 1 then return redis.call('ZADD', due, ARGV[5], item) end
if tonumber(expires) > now then return redis.call('ZADD', due, expires, item) end
redis.call('DEL', file)
redis.call('ZREM', list_key(tag), sha)
redis.call('HINCRBY', owner_key(tag), 'files', -1)
count_bytes(tag, -tonumber(size))
redis.call('ZREM', due, item)
redis.call('ZADD', due, now, 'd ' .. name)
return name
