-- audit(stream, {by, action, subject, details}, offset): adds an entry and drops old ones. audit.ts defines the limits
-- audit_entries, audit_share and audit_ms.
--
-- The operator's stream is cut at its length. In the stream of all others, and of everybody's decisions and changes of
-- schedules, rules and subscriptions, each principal has a share for each of these, one for sessions and one for the rest: a
-- full share loses its own oldest entry, and a full stream the oldest of its largest share. So nobody pushes out the entries
-- of somebody with fewer, nor hides a change behind many others.
--
-- stream:shares  ZSET of the shares by the number of their entries
-- stream:index   ZSET of '<share>|<ms>-<seq>', padded, so that the entries of a share are in the order of time

-- The most entries that one call drops for each reason. A call adds one, so an excess after a limit was lowered goes soon.
local audit_batch = 100

-- Of these, many entries are normal, also of the operator.
local audit_shared = { schedule = 'schedules', rule = 'rules', subscription = 'subscriptions', link = 'links' }

local function audit_share_of(by, action)
  if action == 'delegation.decide' then return by .. '|decisions' end
  local share = audit_shared[string.match(action, '^%a+')]
  if share then return by .. '|' .. share end
  return by .. (string.sub(action, 1, 8) == 'session.' and '|sessions' or '|rest')
end

local function audit_note(stream, share, id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  local place = string.format('%s|%016.0f-%016.0f', share, ms, seq)
  if redis.call('ZADD', stream .. ':index', 0, place) == 1 then redis.call('ZINCRBY', stream .. ':shares', 1, share) end
end

-- Drops the oldest entry of a share.
local function audit_drop_oldest(stream, share)
  local range = { '[' .. share .. '|', '(' .. share .. '}', 'LIMIT', 0, 1 }
  local place = redis.call('ZRANGEBYLEX', stream .. ':index', unpack(range))[1]
  if not place then return redis.call('ZREM', stream .. ':shares', share) end
  local ms, seq = string.match(place, '(%d+)-(%d+)$')
  redis.call('XDEL', stream, string.format('%.0f-%.0f', ms, seq))
  redis.call('ZREM', stream .. ':index', place)
  if tonumber(redis.call('ZINCRBY', stream .. ':shares', -1, share)) <= 0 then redis.call('ZREM', stream .. ':shares', share) end
end

local function audit_share_of_row(row)
  local fields = {}
  for at = 1, #row[2], 2 do fields[row[2][at]] = row[2][at + 1] end
  return audit_share_of(fields.by or '', fields.action or '')
end

local function audit_keep_shares(stream, entry, id, oldest)
  local share = audit_share_of(entry[1], entry[2])
  audit_note(stream, share, id)
  for _, row in ipairs(redis.call('XRANGE', stream, '-', '(' .. oldest, 'COUNT', audit_batch)) do
    audit_drop_oldest(stream, audit_share_of_row(row))
  end
  for _ = 1, audit_batch do
    if tonumber(redis.call('ZSCORE', stream .. ':shares', share) or 0) <= audit_share then break end
    audit_drop_oldest(stream, share)
  end
  for _ = 1, audit_batch do
    if redis.call('XLEN', stream) <= audit_entries then break end
    audit_drop_oldest(stream, redis.call('ZREVRANGE', stream .. ':shares', 0, 0)[1] or share)
  end
end

local function audit(stream, entry, offset)
  local now = redis_ms() + offset
  local values = {'by', entry[1], 'action', entry[2], 'subject', entry[3], 'details', entry[4]}
  local added = redis.pcall('XADD', stream, string.format('%.0f-*', now), unpack(values))
  -- The clock was set back: the stream continues from its last id.
  if type(added) == 'table' and added.err then added = redis.call('XADD', stream, '*', unpack(values)) end
  local oldest = string.format('%.0f', math.max(0, now - audit_ms))
  local is_shared = entry[2] == 'delegation.decide' or audit_shared[string.match(entry[2], '^%a+')] ~= nil
  if entry[1] ~= 'operator' or is_shared then return audit_keep_shares(stream, entry, added, oldest) end
  redis.call('XTRIM', stream, 'MAXLEN', '~', audit_entries)
  redis.call('XTRIM', stream, 'MINID', '~', oldest)
end
