-- Takes due delegations for this gateway, and trims the shard's events. First it gives a sign of life, so that an outage
-- is known before anything that is due since is taken.
-- KEYS     due, the shard's events. The sign of life and the outages are derived: they may be missing, and while a slot
--          moves, a Cluster sends a script with a missing key from node to node.
-- ARGV     clock offset, limit of ids, how long this gateway has them (ms; then another may take them), how long events
--          are kept, limit of the events' bytes, after how long without a sign of life there was an outage (ms)
-- Returns  ids, the longest due first
local time = redis_ms()
local now = time + ARGV[1]
local base = string.gsub(KEYS[1], ':due$', '')
give_sign(base .. ':alive', base .. ':outages', KEYS[2], time, now, tonumber(ARGV[6]))
redis.call('XTRIM', KEYS[2], 'MINID', string.format('%.0f', math.max(0, time - ARGV[4])))
-- An estimate; some servers do not support it.
local size = redis.pcall('MEMORY', 'USAGE', KEYS[2], 'SAMPLES', 200)
if type(size) == 'number' and size > tonumber(ARGV[5]) then
  redis.call('XTRIM', KEYS[2], 'MAXLEN', math.floor(redis.call('XLEN', KEYS[2]) * ARGV[5] / size))
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], now + ARGV[3], id) end
return ids
