-- The keys of files, all in one slot. `tag` is the mark of a principal.
local base = KEYS[1]
-- ZSET: what the upkeep looks at next, ms: `u <upload>`, `f <tag> <sha256>`, and `d <name>` for content to be deleted.
local due = base .. ':due'
-- STRING: the bytes of all files and uploads.
local total = base .. ':bytes'
-- HASH: `bytes`, `files` and `uploads` of a principal.
local function owner_key(tag) return base .. ':owner:' .. tag end
-- ZSET sha256 → when it was complete, ms: the files of a principal.
local function list_key(tag) return base .. ':list:' .. tag end
-- HASH: `name` in the store, `size`, `created_at`, `expires_at`; `fresh`: uploaded since a delegation named it.
local function file_key(tag, sha) return base .. ':file:' .. tag .. ':' .. sha end
-- ZSET delegation id → when its record was last seen, ms: the delegations that name a file.
local function refs_key(tag, sha) return base .. ':refs:' .. tag .. ':' .. sha end
-- SET: `<tag> <sha256>`, the files that a delegation names.
local function named_key(id) return base .. ':named:' .. id end
-- HASH: `tag`, `length` (-1: not known), `counted`, `sha256`, `expires_at`; `writer`: who writes now, empty once it has
-- stored its last byte; `contested`: an earlier one may still write; `done`: the sha256 of a complete one; `key`: the
-- hash of the idempotency key with which it began.
local function upload_key(id) return base .. ':upload:' .. id end
-- STRING: the upload that a request with this idempotency key began, its length and sha256. It goes with the upload.
local function begun_key(key) return base .. ':begun:' .. key end

-- LIST: the uploads of a principal that were complete last, newest first.
local function done_key(tag) return base .. ':done:' .. tag end

-- As text: Lua would write a large number with an exponent, and no bytes as "-0".
local function count_bytes(tag, bytes)
  if bytes == 0 then return end
  redis.call('HINCRBY', owner_key(tag), 'bytes', string.format('%.0f', bytes))
  redis.call('INCRBY', total, string.format('%.0f', bytes))
end

-- Forgets an upload and its idempotency key.
local function forget_upload(id)
  local key = redis.call('HGET', upload_key(id), 'key')
  if key then redis.call('DEL', begun_key(key)) end
  redis.call('DEL', upload_key(id))
end

-- Ends an upload that is not complete; its content is deleted by the upkeep.
local function drop_upload(id, now)
  local tag, counted = unpack(redis.call('HMGET', upload_key(id), 'tag', 'counted'))
  redis.call('ZREM', due, 'u ' .. id)
  if not tag then return end
  count_bytes(tag, -tonumber(counted))
  redis.call('HINCRBY', owner_key(tag), 'uploads', -1)
  redis.call('ZADD', due, now, 'd ' .. id)
  forget_upload(id)
end
