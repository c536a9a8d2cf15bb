-- Adds notifications that are due because time has passed: of a question once for each entry of the list (timely.ts), of an
-- agent without workers at most once in the subscription's `every_seconds`.
-- KEYS: busy lanes, what time makes due (timely.ts)
-- ARGV: now, the prefix of subscriptions, the most of a lane, the name of what is due now or '', the name of what is due next in
-- its place or '', when, then for each notification the subscription, its lane, when it is due, its JSON, and `<agent> <ms>`, for
-- how long no other about the agent follows, or ''
-- Returns how many were added, and when the first pause ends, ms; without pauses, now.
if ARGV[4] ~= '' and redis.call('ZREM', KEYS[2], ARGV[4]) == 0 then return { 0, ARGV[1] } end
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[2], ARGV[6], ARGV[5]) end
local added, soonest = 0, math.huge
for i = 7, #ARGV, 5 do
  local key = ARGV[2] .. ARGV[i]
  local agent, pause = string.match(ARGV[i + 4], '^(%S+) (%d+)$')
  local lane = ARGV[i + 1]
  local last = agent and tonumber(redis.call('HGET', key .. ':rung', agent .. ' ' .. lane) or '0') or 0
  local is_due = not agent or tonumber(ARGV[1]) - last >= tonumber(pause)
  if agent then soonest = math.min(soonest, (is_due and tonumber(ARGV[1]) or last) + tonumber(pause)) end
  if is_due then
    if push(key, ARGV[i], lane, ARGV[i + 2], ARGV[i + 3], ARGV[3], KEYS[1]) then
      added = added + 1
      if agent then
        redis.call('HSET', key .. ':rung', agent .. ' ' .. lane, ARGV[1])
        redis.call('PEXPIRE', key .. ':rung', pause)
      end
    end
  end
end
return { added, soonest == math.huge and ARGV[1] or string.format('%.0f', soonest) }
