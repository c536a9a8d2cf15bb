-- Stores what became of the first notifications of a lane.
-- KEYS: the subscription, the lane, busy lanes
-- ARGV: `<subscription> <lane>`, the first notification as it was read, how many are done, when the rest is due or '', the
-- number of the channel, its state as JSON, 1 when the version grows, the version's key, the claim, how many were dropped, the
-- epoch, the lane
-- Returns how many are left; -1 when the claim is over, or the channel is another one by now.
if redis.call('ZSCORE', KEYS[3], ARGV[1]) ~= ARGV[9] then return -1 end
if redis.call('EXISTS', KEYS[1]) == 0 or (redis.call('HGET', KEYS[1], 'epoch') or '') ~= ARGV[11] then return -1 end
redis.call('HSET', KEYS[1], 'channel:' .. ARGV[5], ARGV[6])
if ARGV[7] == '1' then redis.call('INCR', ARGV[8]) end
-- Others may have been dropped meanwhile, because too many waited: then the first is gone, too.
if ARGV[3] ~= '0' and redis.call('LINDEX', KEYS[2], 0) == ARGV[2] then redis.call('LPOP', KEYS[2], ARGV[3]) end
if ARGV[10] ~= '0' then redis.call('HINCRBY', KEYS[1], 'dropped:' .. ARGV[12], ARGV[10]) end
local left = redis.call('LLEN', KEYS[2])
if left == 0 or ARGV[4] == '' then
  redis.call('ZREM', KEYS[3], ARGV[1])
else
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
end
return left
