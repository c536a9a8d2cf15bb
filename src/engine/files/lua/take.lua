-- ARGV: now, until when another gateway leaves them alone, how many · Returns what is due. An upload that was not continued
-- is dropped here, so that its content follows.
local items = redis.call('ZRANGEBYSCORE', due, '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, item in ipairs(items) do
  if string.sub(item, 1, 2) == 'u ' then drop_upload(string.sub(item, 3), ARGV[1])
  else redis.call('ZADD', due, ARGV[2], item) end
end
return items
