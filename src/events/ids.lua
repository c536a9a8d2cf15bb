-- Ids of events: `<ms>-<n>`, compared as numbers.
local function parts(id)
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end
local function is_before(one, other)
  local ms, seq = parts(one)
  local other_ms, other_seq = parts(other)
  return ms < other_ms or (ms == other_ms and seq < other_seq)
end
