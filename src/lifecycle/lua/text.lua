-- Writes the record and members of the event.

-- Writes the record's packed fields, and these own fields: name, text, …
function save(...) redis.call('HSET', key, 'packed', cmsgpack.pack(record), ...) end

-- Sets an own field of the record; '' clears it.
function store(name, text)
  local n = #set
  set[n + 1], set[n + 2] = name, text
end

-- Adds a member to the event.
function show(name, json) members[#members + 1] = '"' .. name .. '":' .. json end

function quoted(text) return '"' .. text .. '"' end

-- Milliseconds as an ISO 8601 instant.
function iso(ms)
  local days = math.floor(ms / 86400000)
  local rest = ms - days * 86400000
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ',
    yoe + era * 400 + (month <= 2 and 1 or 0), month, doy - math.floor((153 * mp + 2) / 5) + 1,
    math.floor(rest / 3600000), math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
end
