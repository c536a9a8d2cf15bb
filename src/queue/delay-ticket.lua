-- Delays a popped job. KEYS: the queue · ARGV: job id, lock token, delay ms
-- Returns 0, or BullMQ's error code.
local queue = KEYS[1]
local function k(name) return queue .. ':' .. name end
return bull_moveToDelayed({ k('marker'), k('active'), k('prioritized'), k('delayed'), k(ARGV[1]), k('events'), k('meta'),
  k('stalled'), k('wait'), k('limiter'), k('pc') }, { k(''), redis_ms(), ARGV[1], ARGV[2], ARGV[3], '1', '', '0' })
