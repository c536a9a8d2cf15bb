-- KEYS     tokens, expiring, audit
-- ARGV     id, then the audit entry or nothing
-- Returns  1 revoked, 0 no such token
local json = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
if not json then return 0 end
if ARGV[2] then
  local entry = {unpack(ARGV, 2)}
  entry[4] = cjson.encode({principal = cjson.decode(json).principal})
  audit(KEYS[3], entry, 0)
end
return 1
