-- is_missed(key, position, oldest): whether entries after the position were trimmed.
-- It is false if the position is the start, if an entry up to the position is left, or if no entry was added after it.
-- Otherwise it depends on how many of the stream's entries are gone:
-- - If the position is older than `oldest` (the retention time), one is enough.
-- - Otherwise only trimmed entries count, not erased ones. The hash `:erased` stores how many were erased from each
--   stream. Its field `<stream>:whole` describes the stream at its last erasure: its oldest entry, and how many entries
--   had been trimmed. While that number stays the same, a position at or after that entry has missed nothing.
local function info(key)
  local found = {}
  if redis.call('EXISTS', key) == 0 then return found end
  local flat = redis.call('XINFO', 'STREAM', key)
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end
local function none_up_to(key, id) return #redis.call('XRANGE', key, '-', id, 'COUNT', 1) == 0 end
local function is_missed(key, position, oldest)
  if position == '0-0' or not none_up_to(key, position) then return false end
  local found = info(key)
  local added = found['entries-added']
  if added == nil or not is_before(position, found['last-generated-id']) then return false end
  local lost = added - found['length']
  if is_before(position, oldest) then return lost > 0 end
  local noted = redis.call('HMGET', string.match(key, '^{[^}]*}') .. ':erased', key, key .. ':whole')
  local trimmed = lost - tonumber(noted[1] or 0)
  if trimmed <= 0 then return false end
  local from, of = string.match(noted[2] or '', '^(%S+) (%S+)$')
  return not from or tonumber(of) ~= trimmed or is_before(position, from)
end
