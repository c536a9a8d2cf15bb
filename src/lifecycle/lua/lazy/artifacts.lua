-- Artifacts. Each body is stored once, in a hash; events refer to it. The fields of the hash:
--   @<artifact id>     place, number of the last chunk, bytes, number of the first chunk; if the agent named the last
--                      chunk, also its fence, chunk_id and hash
--   <place>:<number>   the JSON of a chunk
-- A record never reuses a place or number, so a reference finds its own body or none. A chunk that is not appended
-- replaces all earlier ones, which are deleted.

-- Computes how the chunks change the artifacts, and by how many bytes. Refuses a named chunk that is stored already.
function guard_artifacts()
  artifacts = {}
  for i, chunk in ipairs(chunks) do
    local one = artifacts[chunk.id] or read_artifact(chunk.id)
    artifacts[chunk.id] = one
    local before, size = chunk.append and one.bytes or 0, #argv[3 + 2 * cmd.fields + i]
    growth = growth + before + size - one.bytes
    one.bytes = before + size
  end
  if not cmd.chunk_id then return nil end
  local name, named = chunk_name(), artifacts[chunks[1].id].named or ''
  if string.sub(named, 1, #name) ~= name then return nil end
  return { kind = named == name .. cmd.chunk_hash and 'duplicate' or 'chunk', extends_lease = true }
end

function read_artifact(id)
  local known = redis.call('HGET', key .. ':artifacts', '@' .. id) or ''
  local place, last, bytes, first, named = string.match(known, '^(%d+) (%d+) (%d+) (%d+) (.*)$')
  return { place = tonumber(place), last = tonumber(last) or 0, bytes = tonumber(bytes) or 0,
    first = tonumber(first) or 1, named = named }
end

function chunk_name() return cmd.fence .. ' ' .. cmd.chunk_id .. ' ' end

function store_artifacts()
  record.artifact_bytes = (record.artifact_bytes or 0) + growth
  record.artifact_fence = record.fence
  refs = {}
  for i, chunk in ipairs(chunks) do
    local body = argv[3 + 2 * cmd.fields + i]
    store_chunk(chunk, artifacts[chunk.id], body)
    ref_bytes = ref_bytes + #body
    refs[i] = '[' .. cjson.encode(chunk.id) .. ',' .. artifacts[chunk.id].place .. ',' .. artifacts[chunk.id].last .. ']'
  end
end

function store_chunk(chunk, one, body)
  local hash = key .. ':artifacts'
  if not one.place then
    one.place = (record.places or 0) + 1
    record.places = one.place
  end
  if not chunk.append then
    for n = one.first, one.last do redis.call('HDEL', hash, one.place .. ':' .. n) end
    one.first = one.last + 1
  end
  one.last = one.last + 1
  local named = cmd.chunk_id and chunk_name() .. cmd.chunk_hash or ''
  redis.call('HSET', hash, one.place .. ':' .. one.last, body,
    '@' .. chunk.id, one.place .. ' ' .. one.last .. ' ' .. one.bytes .. ' ' .. one.first .. ' ' .. named)
end

-- The next worker starts from scratch. `own`: only what was sent under this lease is dropped. `lapsed`: this worker is the
-- next one after a lapse, which kept the artifacts for a reclaim.
function drop_artifacts()
  if rule.drops_artifacts == 'own' and record.artifact_fence ~= record.fence then return end
  if rule.drops_artifacts == 'lapsed' and record.lapsed ~= record.fence then return end
  redis.call('DEL', key .. ':artifacts')
  record.bytes = record.bytes - record.artifact_bytes
  keeps = keeps - record.artifact_bytes
  record.artifact_bytes = nil
  show('artifacts_dropped', 'true')
end
