-- Ids of events: `<ms>-<n>`, compared as numbers: 999-0 is before 1000-0, though not as text.
-- is_before(one, other): whether the first id is older.
local function parts(id)
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end
local function is_before(one, other)
  local ms, seq = parts(one)
  local other_ms, other_seq = parts(other)
  return ms < other_ms or (ms == other_ms and seq < other_seq)
end
