-- audit(stream, {by, action, subject, details}, offset): adds an entry and drops old ones. audit.ts defines the limits
-- audit_entries and audit_ms.
local function audit(stream, entry, offset)
  local now = redis_ms() + offset
  local values = {'by', entry[1], 'action', entry[2], 'subject', entry[3], 'details', entry[4]}
  local id = string.format('%.0f-*', now)
  local added = redis.pcall('XADD', stream, 'MAXLEN', '~', audit_entries, id, unpack(values))
  -- The clock was set back: the stream continues from its last id.
  if type(added) == 'table' and added.err then redis.call('XADD', stream, 'MAXLEN', '~', audit_entries, '*', unpack(values)) end
  redis.call('XTRIM', stream, 'MINID', '~', string.format('%.0f', math.max(0, now - audit_ms)))
end
