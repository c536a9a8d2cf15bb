-- ARGV: upload, tag · Returns nil, or {length, sha256 of a complete one or '', expires_at}.
local tag, length, done, expires = unpack(redis.call('HMGET', upload_key(ARGV[1]), 'tag', 'length', 'done', 'expires_at'))
if tag ~= ARGV[2] then return nil end
return {length, done or '', expires}
