-- Creates an agent or replaces its settings, if they are still those that the caller read.
-- KEYS     agent, names, names of push agents, names in order, mark of the agents
-- ARGV     name, clock offset, 1 for push, tag that the stored settings must have ('': there are none), limit of
--          agents, a new mark, field, value …
-- Returns  1 written, 0 another tag, -1 being deleted, -2 too many agents
local stored = redis.call('HMGET', KEYS[1], 'created_at', 'version', 'deleting')
if stored[3] then return -1 end
local version = stored[2] or '0'
if ARGV[4] ~= (stored[1] and stored[1] .. '-' .. version or '') then return 0 end
local now = redis_ms() + ARGV[2]
if not stored[1] then
  if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[5]) then return -2 end
  redis.call('HSET', KEYS[1], 'created_at', now)
end
redis.call('HSET', KEYS[1], 'updated_at', now, 'version', version + 1, unpack(ARGV, 7))
for i = 7, #ARGV, 2 do
  if ARGV[i + 1] == '' and string.sub(ARGV[i], 1, 7) == 'weight:' then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
redis.call('SET', KEYS[5], ARGV[6])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[4], 0, ARGV[1])
redis.call(ARGV[3] == '1' and 'SADD' or 'SREM', KEYS[3], ARGV[1])
return 1
