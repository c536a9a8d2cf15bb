-- ARGV: upload, writer, sha256, size, now, expires_at, how long the upload is remembered, ms, the name of its content, 1 if the
-- content of an earlier file is missing, how many complete uploads are remembered · Returns 'gone', 'taken', or {size,
-- created_at, expires_at} of the file. The same content of the same principal is stored once.
local id, sha, size, now, expires, name = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[8]
local key = upload_key(id)
local tag, counted, writer, done = unpack(redis.call('HMGET', key, 'tag', 'counted', 'writer', 'done'))
if not tag then return 'gone' end
local file = file_key(tag, done or sha)
if not done then
  if writer ~= ARGV[2] then return 'taken' end
  local before = redis.call('HGET', file, 'name')
  redis.call('ZREM', due, 'd ' .. name)
  if name ~= id then redis.call('ZADD', due, now, 'd ' .. id) end
  if before then
    count_bytes(tag, -tonumber(counted))
    redis.call('HSET', file, 'expires_at', expires, 'fresh', 1)
    local unused = name
    if ARGV[9] == '1' then
      redis.call('HSET', file, 'name', name)
      unused = before
    end
    redis.call('ZADD', due, now, 'd ' .. unused)
  else
    count_bytes(tag, size - tonumber(counted))
    redis.call('HSET', file, 'name', name, 'size', size, 'created_at', now, 'expires_at', expires, 'fresh', 1)
    redis.call('ZADD', list_key(tag), now, sha)
    redis.call('HINCRBY', owner_key(tag), 'files', 1)
  end
  redis.call('ZADD', due, expires, 'f ' .. tag .. ' ' .. sha)
  redis.call('HINCRBY', owner_key(tag), 'uploads', -1)
  redis.call('ZREM', due, 'u ' .. id)
  redis.call('HSET', key, 'done', sha, 'length', size)
  redis.call('PEXPIRE', key, ARGV[7])
  -- A client whose last answer is lost asks at once, so few are remembered.
  redis.call('LPUSH', done_key(tag), id)
  redis.call('PEXPIRE', done_key(tag), ARGV[7])
  if redis.call('LLEN', done_key(tag)) > tonumber(ARGV[10]) then
    forget_upload(redis.call('RPOP', done_key(tag)))
  end
end
return redis.call('HMGET', file, 'size', 'created_at', 'expires_at')
