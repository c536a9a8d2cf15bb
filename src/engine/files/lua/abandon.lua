-- ARGV: name, now · Something may have been stored for an upload that is gone: it is deleted.
if redis.call('EXISTS', upload_key(ARGV[1])) == 0 then redis.call('ZADD', due, ARGV[2], 'd ' .. ARGV[1]) end
return 1
