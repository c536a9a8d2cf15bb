-- KEYS: the queue · ARGV: lock token, lock ms
-- Returns the first job's id and data, or false and the time at which the next job is due (0: there is none). The third
-- value is Redis' time.
local queue = KEYS[1]
local function k(name) return queue .. ':' .. name end
local now = redis_ms()
local options = cmsgpack.pack({ token = ARGV[1], lockDuration = tonumber(ARGV[2]) })
local found = bull_moveToActive({ k('wait'), k('active'), k('prioritized'), k('events'), k('stalled'), k('limiter'),
  k('delayed'), k('paused'), k('meta'), k('pc'), k('marker') }, { k(''), now, options })
local job = found[2]
if job ~= 0 then return { job, redis.call('HGET', k(job), 'data'), now } end
-- The queue has reached its rate limit, which ends after found[3] ms.
if found[3] > 0 then return { false, now + found[3], now } end
return { false, found[4], now }
