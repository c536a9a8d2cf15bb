-- Reads the row of each agent for a list.
-- KEYS     seen, unreached
-- ARGV     base, now, names …
-- Returns  a row of strings for each name: doc, paused, version, created at, updated at, origin of its credentials,
--          queued, submitted, working, interrupted, awaiting children, oldest submitted at, last seen at, unreached since,
--          pauses of its workers
local base, now, rows = ARGV[1], ARGV[2], {}
for i = 3, #ARGV do
  local name = ARGV[i]
  local live = base .. ':live:' .. name .. ':'
  local row = redis.call('HMGET', base .. ':agent:' .. name, 'doc', 'paused', 'version', 'created_at', 'updated_at',
    'credentials_for')
  row[7] = redis.call('ZCOUNT', live .. 'submitted', '-inf', now)
  row[8] = redis.call('ZCARD', live .. 'submitted')
  row[9] = redis.call('ZCARD', live .. 'working')
  row[10] = redis.call('ZCARD', live .. 'interrupted')
  row[11] = redis.call('ZCARD', live .. 'awaiting_children')
  row[12] = redis.call('ZRANGE', live .. 'submitted', 0, 0, 'WITHSCORES')[2] or ''
  local seen = redis.call('HMGET', KEYS[1], name, name .. ':paused')
  row[13], row[15] = seen[1] or '', seen[2] or ''
  row[14] = redis.call('HGET', KEYS[2], name) or ''
  for at = 1, 6 do row[at] = row[at] or '' end
  rows[#rows + 1] = row
end
return rows
