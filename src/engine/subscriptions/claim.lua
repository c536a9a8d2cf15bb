-- Takes lanes that are due. The score of a lane that is taken is its claim: when it ends. Nobody else takes the lane before, and
-- what took it does nothing more once the score is another.
-- KEYS: busy lanes · ARGV: now, until when they are taken, the most · Returns `<subscription> <lane>` of those that were due.
local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3])
for _, lane in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[2], lane) end
return due
