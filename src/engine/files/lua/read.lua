-- ARGV: tag, sha256, delegation or '' · Returns nil if there is no such file, or the delegation does not name it; otherwise
-- {name, size, created_at, expires_at}.
if ARGV[3] ~= '' and redis.call('SISMEMBER', named_key(ARGV[3]), ARGV[1] .. ' ' .. ARGV[2]) == 0 then return nil end
local found = redis.call('HMGET', file_key(ARGV[1], ARGV[2]), 'name', 'size', 'created_at', 'expires_at')
if not found[1] then return nil end
return found
