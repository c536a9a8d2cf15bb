-- Keeps the sign of life of a shard's gateways, and records the intervals without one: outages of all gateways, or of
-- Redis. lifecycle/lua/lazy/grace.lua reads both keys.
-- `now` has the offset of the test's clock; a sign of life is by Redis' clock, so that a test that moves its clock makes no
-- outage.

local SIGN_MS, MOST_OUTAGES = 1000, 8

-- Call it before anything else that a gateway does for the shard. `outage_ms`: after how long without a sign of life there
-- was an outage.
local function give_sign(alive, outages, events, time, now, outage_ms)
  local last = tonumber(redis.call('GET', alive) or '')
  if not last then
    -- A version without signs of life was here; its newest event was one.
    local newest = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
    last = newest and tonumber(string.match(newest[1], '^%d+')) or time
  elseif time >= last and time - last < SIGN_MS then
    return
  end
  if time - last >= outage_ms then
    redis.call('RPUSH', outages, string.format('%.0f %.0f', now - (time - last), now))
    redis.call('LTRIM', outages, -MOST_OUTAGES, -1)
  end
  redis.call('SET', alive, string.format('%.0f', time))
end
