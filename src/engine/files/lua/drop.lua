-- ARGV: upload, tag, now, writer or '' for any · Returns 1 if it was there and not complete.
local tag, done, writer = unpack(redis.call('HMGET', upload_key(ARGV[1]), 'tag', 'done', 'writer'))
if tag ~= ARGV[2] or done or (ARGV[4] ~= '' and writer ~= ARGV[4]) then return 0 end
drop_upload(ARGV[1], ARGV[3])
return 1
