-- ARGV: upload, writer, sha256, size, now, expires_at, how long the upload is remembered, ms · Returns 'gone', 'taken', or
-- {size, created_at, expires_at} of the file. The same content of the same principal is stored once.
local id, sha, size, now, expires = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local key = upload_key(id)
local tag, counted, writer, done = unpack(redis.call('HMGET', key, 'tag', 'counted', 'writer', 'done'))
if not tag then return 'gone' end
local file = file_key(tag, done or sha)
if not done then
  if writer ~= ARGV[2] then return 'taken' end
  if redis.call('EXISTS', file) == 1 then
    count_bytes(tag, -tonumber(counted))
    redis.call('ZADD', due, now, 'd ' .. id)
    redis.call('HSET', file, 'expires_at', expires)
  else
    count_bytes(tag, size - tonumber(counted))
    redis.call('HSET', file, 'name', id, 'size', size, 'created_at', now, 'expires_at', expires)
    redis.call('ZADD', list_key(tag), now, sha)
    redis.call('HINCRBY', owner_key(tag), 'files', 1)
  end
  redis.call('ZADD', due, expires, 'f ' .. tag .. ' ' .. sha)
  redis.call('HINCRBY', owner_key(tag), 'uploads', -1)
  redis.call('ZREM', due, 'u ' .. id)
  redis.call('HSET', key, 'done', sha, 'length', size)
  redis.call('PEXPIRE', key, ARGV[7])
end
return redis.call('HMGET', file, 'size', 'created_at', 'expires_at')
