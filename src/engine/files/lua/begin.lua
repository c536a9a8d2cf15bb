-- ARGV: upload, tag, length or -1, expires_at, most uploads, most files, most bytes, sha256 or '', the hash of an idempotency key
-- or '', how long the key is kept, ms · Returns 'ok', 'again ' and the upload that an equal request with the key began,
-- 'conflict' for a key of another request, or what is exceeded.
local id, tag, length = ARGV[1], ARGV[2], tonumber(ARGV[3])
local asked = ' ' .. ARGV[3] .. ' ' .. ARGV[8]
local before = ARGV[9] ~= '' and redis.call('GET', begun_key(ARGV[9]))
if before then
  local earlier = string.match(before, '^%S+')
  if before ~= earlier .. asked then return 'conflict' end
  return 'again ' .. earlier
end
local uploads, files, bytes = unpack(redis.call('HMGET', owner_key(tag), 'uploads', 'files', 'bytes'))
if tonumber(uploads or 0) >= tonumber(ARGV[5]) then return 'uploads' end
if tonumber(files or 0) >= tonumber(ARGV[6]) then return 'principal_files' end
local counted = math.max(length, 0)
if tonumber(bytes or 0) + counted > tonumber(ARGV[7]) then return 'principal_file_bytes' end
redis.call('HSET', upload_key(id), 'tag', tag, 'length', length, 'counted', counted, 'expires_at', ARGV[4], 'sha256', ARGV[8])
if ARGV[9] ~= '' then
  redis.call('HSET', upload_key(id), 'key', ARGV[9])
  redis.call('SET', begun_key(ARGV[9]), id .. asked, 'PX', ARGV[10])
end
redis.call('HINCRBY', owner_key(tag), 'uploads', 1)
count_bytes(tag, counted)
redis.call('ZADD', due, ARGV[4], 'u ' .. id)
return 'ok'
