-- Reads the queues of some agents of a shard.
-- KEYS     the names of the shard's agents
-- ARGV     base, now, cursor of SSCAN (0: the beginning), about how many agents
-- Returns  next cursor (0: the end), then for each agent with queued or running work: name, number queued, since when,
--          number running
local base, now = ARGV[1], ARGV[2]
local scanned = redis.call('SSCAN', KEYS[1], ARGV[3], 'COUNT', ARGV[4])
local found = { scanned[1] }
for _, name in ipairs(scanned[2]) do
  local live = base .. ':live:' .. name .. ':'
  local waiting, working = redis.call('ZCOUNT', live .. 'submitted', '-inf', now), redis.call('ZCARD', live .. 'working')
  if waiting + working > 0 then
    local since = waiting > 0 and redis.call('ZRANGE', live .. 'submitted', 0, 0, 'WITHSCORES')[2] or now
    for _, value in ipairs({ name, waiting, since, working }) do found[#found + 1] = value end
  end
end
return found
