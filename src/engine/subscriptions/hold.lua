-- KEYS: busy lanes · ARGV: `<subscription> <lane>`, the claim, the next claim · Returns 1, or 0 when the claim is over.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1
