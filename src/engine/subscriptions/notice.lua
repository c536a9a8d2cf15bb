-- Adds the notifications of the events of one shard up to a position, each once: of several gateways that read the same
-- events, the first moves the position, and the others find it moved.
-- KEYS: the positions, busy lanes, what time makes due (timely.ts)
-- ARGV: the shard, the position that was read ('' for none), the new position, the prefix of
-- subscriptions, the most of a lane, how many timely entries follow, then for each its name and when it is due, then for each
-- notification the subscription, its lane, when it is due, and its JSON
-- Returns 1, or 0 when the position is another by now.
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
local at = 7
for _ = 1, ARGV[6] do
  redis.call('ZADD', KEYS[3], ARGV[at + 1], ARGV[at])
  at = at + 2
end
for i = at, #ARGV, 4 do push(ARGV[4] .. ARGV[i], ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[5], KEYS[2]) end
return 1
