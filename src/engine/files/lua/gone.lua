-- ARGV: names whose content is deleted.
for at = 1, #ARGV do redis.call('ZREM', due, 'd ' .. ARGV[at]) end
return #ARGV
