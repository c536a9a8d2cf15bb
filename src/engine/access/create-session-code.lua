-- Stores a code that opens one session, and deletes the principal's oldest codes above the limit.
-- KEYS     tokens, the principal's codes, the code
-- ARGV     now, hash, JSON, expires at, token id or empty, limit, prefix of the keys of codes
-- Returns  1 created, 0 the token is revoked
local now, hash, json, expires_at, token_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if token_id ~= '' and redis.call('HEXISTS', KEYS[1], token_id) == 0 then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
while redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6]) do
  redis.call('DEL', ARGV[7] .. redis.call('ZPOPMIN', KEYS[2])[1])
end
redis.call('SET', KEYS[3], json, 'PXAT', expires_at)
redis.call('ZADD', KEYS[2], expires_at, hash)
redis.call('PEXPIREAT', KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
return 1
