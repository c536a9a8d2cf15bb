-- Puts notifications into lanes. A lane that was empty is due at the time that comes with it.
--
-- push(key of the subscription, lane, due at, JSON, most, busy lanes): whether the subscription exists.
local function push(key, id, lane, due, json, most, busy)
  if redis.call('EXISTS', key) == 0 then return false end
  local list = key .. ':' .. lane
  local size = redis.call('RPUSH', list, redis.call('HINCRBY', key, 'n', 1) .. ' ' .. json)
  if size == 1 then redis.call('ZADD', busy, due, id .. ' ' .. lane) end
  if size > tonumber(most) then
    redis.call('LPOP', list)
    redis.call('HINCRBY', key, 'dropped:' .. lane, 1)
  end
  return true
end
