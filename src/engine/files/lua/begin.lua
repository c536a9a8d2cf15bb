-- ARGV: upload, tag, length or -1, expires_at, most uploads, most files, most bytes, sha256 or '' · Returns 'ok', or what is exceeded.
local id, tag, length = ARGV[1], ARGV[2], tonumber(ARGV[3])
local uploads, files, bytes = unpack(redis.call('HMGET', owner_key(tag), 'uploads', 'files', 'bytes'))
if tonumber(uploads or 0) >= tonumber(ARGV[5]) then return 'uploads' end
if tonumber(files or 0) >= tonumber(ARGV[6]) then return 'principal_files' end
local counted = math.max(length, 0)
if tonumber(bytes or 0) + counted > tonumber(ARGV[7]) then return 'principal_file_bytes' end
redis.call('HSET', upload_key(id), 'tag', tag, 'length', length, 'counted', counted, 'expires_at', ARGV[4], 'sha256', ARGV[8])
redis.call('HINCRBY', owner_key(tag), 'uploads', 1)
count_bytes(tag, counted)
redis.call('ZADD', due, ARGV[4], 'u ' .. id)
return 'ok'
