-- ARGV: upload, tag, writer or '', length or -1, expires_at · Returns nil, or {length, counted, sha256 of a complete one,
-- expires_at, sha256 that it must have}. A writer
-- takes the upload over from an earlier one. A length that is known stays.
local key = upload_key(ARGV[1])
local tag, length, counted, done, expires, sha =
  unpack(redis.call('HMGET', key, 'tag', 'length', 'counted', 'done', 'expires_at', 'sha256'))
if tag ~= ARGV[2] then return nil end
if done then return {length, counted, done, expires, sha} end
if ARGV[3] ~= '' then
  if tonumber(length) < 0 and tonumber(ARGV[4]) >= 0 then length = ARGV[4] end
  expires = ARGV[5]
  redis.call('HSET', key, 'writer', ARGV[3], 'length', length, 'expires_at', expires)
  redis.call('ZADD', due, expires, 'u ' .. ARGV[1])
end
return {length, counted, '', expires, sha}
