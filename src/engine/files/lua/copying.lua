-- ARGV: name, until when, ms · The content gets this name soon; otherwise it is deleted then.
return redis.call('ZADD', due, ARGV[2], 'd ' .. ARGV[1])
