-- Stores a session and its audit entry; uses up its code, if a code opens it.
-- KEYS     tokens, sessions, the principal's sessions, the session, audit, then for a code: the code, the principal's
--          codes
-- ARGV     now, session id, JSON, expires at, token id or empty, limit of the principal, limit of all or empty, code's
--          hash or empty, prefix of the keys of sessions, then the audit entry
-- Returns  'created', 'revoked' (the token), 'used' (the code), 'full' (the principal), 'all_full'
local now, id, json, expires_at, token_id, code = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[8]
if code ~= '' and redis.call('EXISTS', KEYS[6]) == 0 then return 'used' end
if token_id ~= '' and redis.call('HEXISTS', KEYS[1], token_id) == 0 then return 'revoked' end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[6]) then
  -- Sessions of an earlier operator token are not valid, and no list shows them.
  local operator = cjson.decode(json).operator
  if operator == cjson.null then return 'full' end
  for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    local stored = redis.call('GET', ARGV[9] .. other)
    local mark = stored and cjson.decode(stored).operator
    if mark and mark ~= cjson.null and mark ~= operator then
      redis.call('DEL', ARGV[9] .. other)
      redis.call('ZREM', KEYS[2], other)
      redis.call('ZREM', KEYS[3], other)
    end
  end
  if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[6]) then return 'full' end
end
if ARGV[7] ~= '' and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then return 'all_full' end
if code ~= '' then
  redis.call('DEL', KEYS[6])
  redis.call('ZREM', KEYS[7], code)
end
redis.call('SET', KEYS[4], json, 'PXAT', expires_at)
for _, list in ipairs({KEYS[2], KEYS[3]}) do
  redis.call('ZADD', list, expires_at, id)
  redis.call('PEXPIREAT', list, redis.call('ZRANGE', list, -1, -1, 'WITHSCORES')[2])
end
audit(KEYS[5], {unpack(ARGV, 10)}, 0)
return 'created'
