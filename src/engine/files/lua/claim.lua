-- ARGV: upload, tag, writer, length or -1, expires_at · The writer takes the upload over. Returns nil, or {length, 1
-- if an earlier writer may still write, the sha256 that the content must have}. A length that is known stays.
local key = upload_key(ARGV[1])
local tag, length, before, contested, done, sha =
  unpack(redis.call('HMGET', key, 'tag', 'length', 'writer', 'contested', 'done', 'sha256'))
if tag ~= ARGV[2] or done then return nil end
if tonumber(length) < 0 then length = ARGV[4] end
if before and before ~= '' then contested = '1' end
redis.call('HSET', key, 'writer', ARGV[3], 'length', length, 'expires_at', ARGV[5], 'contested', contested or '0')
redis.call('ZADD', due, ARGV[5], 'u ' .. ARGV[1])
return {length, contested or '0', sha}
