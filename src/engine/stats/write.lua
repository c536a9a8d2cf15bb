-- Adds what a gateway has counted to the buckets.
-- KEYS: the subjects, then for each entry its buckets, one of each resolution.
-- ARGV: 1 now (ms); 2 the limit of subjects; 3 how long a subject is remembered (ms); 4 the limit of codes; 5 how long
-- the buckets of each resolution are kept (ms, separated by commas); 6 the limit of currencies; then each entry as JSON
-- {subject, add, max, codes, used, costs}.
local now, cap, codes_cap, currencies_cap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[6])
local kept = {}
for ms in string.gmatch(ARGV[5], '%d+') do kept[#kept + 1] = ms end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]))

local function write(key, entry)
  for field, n in pairs(entry.add) do redis.call('HINCRBY', key, field, n) end
  for field, n in pairs(entry.max) do
    if n > tonumber(redis.call('HGET', key, field) or 0) then redis.call('HSET', key, field, n) end
  end
  for code, n in pairs(entry.codes) do
    local field = 'e:' .. code
    if code ~= '' and redis.call('HEXISTS', key, field) == 0 then
      if tonumber(redis.call('HGET', key, 'codes') or 0) < codes_cap then
        redis.call('HINCRBY', key, 'codes', 1)
      else
        field = 'e:'
      end
    end
    redis.call('HINCRBY', key, field, n)
  end
end

-- What was used can be too large for an integer of Redis.
local function add_used(key, entry)
  for field, n in pairs(entry.used) do redis.call('HINCRBYFLOAT', key, field, n) end
  for currency, n in pairs(entry.costs) do
    local field = 'c:' .. currency
    local known = redis.call('HEXISTS', key, field) == 1
    if not known and tonumber(redis.call('HGET', key, 'currencies') or 0) < currencies_cap then
      redis.call('HINCRBY', key, 'currencies', 1)
      known = true
    end
    if known then redis.call('HINCRBYFLOAT', key, field, n) end
  end
end

local at = 2
for i = 7, #ARGV do
  local entry = cjson.decode(ARGV[i])
  local subject = entry.subject
  local has_room = subject == 'all' or redis.call('ZSCORE', KEYS[1], subject) or redis.call('ZCARD', KEYS[1]) < cap
  if has_room and subject ~= 'all' then redis.call('ZADD', KEYS[1], now, subject) end
  for r = 1, #kept do
    if has_room then
      write(KEYS[at], entry)
      add_used(KEYS[at], entry)
      redis.call('PEXPIRE', KEYS[at], kept[r])
    end
    at = at + 1
  end
end
