-- The events of one delegation: a list of ids and texts in turn, oldest first.

-- Returns a function that returns the next events from `start` on, at most `count`, each as XRANGE returns it. `start`
-- is an id, or '(' and an id, which is then left out. The ids are ascending, so a binary search finds the start.
local function own_from(key, start)
  local id, low, high = string.match(start, '[^(]+'), 0, redis.call('LLEN', key) / 2
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('LINDEX', key, 2 * middle)
    if is_before(found, id) or (found == id and start ~= id) then low = middle + 1 else high = middle end
  end
  return function(count)
    local flat, some = redis.call('LRANGE', key, 2 * low, 2 * (low + count) - 1), {}
    for i = 1, #flat, 2 do some[#some + 1] = { flat[i], { 'e', flat[i + 1] } } end
    low = low + #some
    return some
  end
end
