-- ARGV: upload, writer, bytes that it may reach, most bytes of the principal · Returns 'ok', 'gone', 'taken' or what is exceeded.
local key = upload_key(ARGV[1])
local tag, counted, writer, done = unpack(redis.call('HMGET', key, 'tag', 'counted', 'writer', 'done'))
if not tag or done then return 'gone' end
if writer ~= ARGV[2] then return 'taken' end
local more = tonumber(ARGV[3]) - tonumber(counted)
if more <= 0 then return 'ok' end
if tonumber(redis.call('HGET', owner_key(tag), 'bytes') or 0) + more > tonumber(ARGV[4]) then
  return 'principal_file_bytes'
end
redis.call('HSET', key, 'counted', ARGV[3])
count_bytes(tag, more)
return 'ok'
