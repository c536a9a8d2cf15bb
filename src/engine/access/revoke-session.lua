-- Deletes a session, adds the audit entry, and notifies all gateways.
-- KEYS     the session, sessions, audit, mark of revocations
-- ARGV     id, the principal that the session must have or empty, channel of revocations, prefix of the principals'
--          sessions, a new mark, then the audit entry
-- Returns  1 revoked, 0 no such session of that principal
local json = redis.call('GET', KEYS[1])
if not json then return 0 end
local id, session = ARGV[1], cjson.decode(json)
if ARGV[2] ~= '' and ARGV[2] ~= session.principal then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', ARGV[4] .. session.principal, id)
redis.call('SET', KEYS[4], ARGV[5])
redis.call('PUBLISH', ARGV[3], id)
local entry = {unpack(ARGV, 6)}
entry[4] = cjson.encode({principal = session.principal})
audit(KEYS[3], entry, 0)
return 1
