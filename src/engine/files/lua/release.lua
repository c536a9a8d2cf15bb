-- ARGV: upload, writer · The writer has stored its last byte.
if redis.call('HGET', upload_key(ARGV[1]), 'writer') == ARGV[2] then redis.call('HSET', upload_key(ARGV[1]), 'writer', '') end
return 1
