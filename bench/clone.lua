-- Clones one finished delegation many times: every key, list entry, stream entry and index entry that names it, with
-- an id of its own. Event ids are new, and grow; times of indexes go a millisecond back with every clone.
-- ARGV[1]  the recipe, JSON (kept.ts): id, context_id, keys, zsets, streams, events
-- ARGV[2]  number of the first clone, ARGV[3] of the last
-- Returns  the id of the last

local r = cjson.decode(ARGV[1])
local id, context

local function named(text)
  return (string.gsub(string.gsub(text, r.id, id), r.context_id, context))
end

local function all(list)
  local out = {}
  for i, item in ipairs(list) do out[i] = item.named and named(item.text) or item.text end
  return out
end

for n = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  id = string.sub(r.id, 1, -27) .. string.sub(redis.sha1hex('d' .. n), 1, 26)
  context = string.sub(r.context_id, 1, -27) .. string.sub(redis.sha1hex('c' .. n), 1, 26)
  local events = {}
  for _, event in ipairs(r.events) do
    local fresh = '*'
    for _, copy in ipairs(event.copies) do
      fresh = redis.call('XADD', named(copy.key), fresh, unpack(all(event.fields)))
    end
    events[event.id] = fresh
  end
  for _, key in ipairs(r.keys) do
    local name = named(key.name)
    local values = all(key.values)
    for i, text in ipairs(values) do values[i] = events[text] or text end
    if #key.packed > 0 then
      local record = {}
      for _, one in ipairs(key.packed) do
        record[one.name] = one.number or events[one.text] or one.named and named(one.text) or one.text
      end
      values[#values + 1], values[#values + 2] = 'packed', cmsgpack.pack(record)
    end
    redis.call(key.type == 'hash' and 'HSET' or 'RPUSH', name, unpack(values))
    if key.ttl_ms > 0 then redis.call('PEXPIRE', name, key.ttl_ms) end
  end
  for _, entry in ipairs(r.zsets) do
    redis.call('ZADD', named(entry.key), entry.score - n, named(entry.member))
  end
end
return id
