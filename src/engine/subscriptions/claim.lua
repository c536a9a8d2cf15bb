-- Claims lanes that are due. The score of a claimed lane is its claim: the time at which the claim ends. Nobody else claims the
-- lane before, and its holder stops once the score is another.
-- KEYS: busy lanes · ARGV: now, when the claims end, the most lanes · Returns `<subscription> <lane>` of those that were due.
local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3])
for _, lane in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[2], lane) end
return due
