-- ARGV: upload, tag · Returns nil, or {length, counted, sha256 of a complete one or '', expires_at, sha256 that it must have}.
local found = redis.call('HMGET', upload_key(ARGV[1]), 'tag', 'length', 'counted', 'done', 'expires_at', 'sha256')
if found[1] ~= ARGV[2] then return nil end
return {found[2], found[3], found[4] or '', found[5], found[6]}
