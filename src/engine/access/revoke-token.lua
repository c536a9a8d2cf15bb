-- Deletes a token and its sessions, adds the audit entry, and notifies all gateways.
-- KEYS     tokens, expiring, audit, sessions, mark of revocations
-- ARGV     id, prefix of the keys of sessions, prefix of the principals' sessions, a new mark, channel of revocations,
--          then the audit entry or nothing
-- Returns  1 revoked, 0 no such token
local id = ARGV[1]
local json = redis.call('HGET', KEYS[1], id)
redis.call('HDEL', KEYS[1], id)
redis.call('ZREM', KEYS[2], id)
if not json then return 0 end
redis.call('SET', KEYS[5], ARGV[4])
redis.call('PUBLISH', ARGV[5], id)
local principal = cjson.decode(json).principal
for _, session in ipairs(redis.call('ZRANGE', ARGV[3] .. principal, 0, -1)) do
  local stored = redis.call('GET', ARGV[2] .. session)
  if stored and cjson.decode(stored).token_id == id then
    redis.call('DEL', ARGV[2] .. session)
    redis.call('ZREM', KEYS[4], session)
    redis.call('ZREM', ARGV[3] .. principal, session)
  end
end
if ARGV[6] then
  local entry = {unpack(ARGV, 6)}
  entry[4] = cjson.encode({principal = principal})
  audit(KEYS[3], entry, 0)
end
return 1
