-- KEYS: the hash of the agent and scope, the agent
-- ARGV: base, clock offset, id, JSON, agent, scope, by, token, until (ms or ''), for (ms or ''), uses or '', the limits: of one
--       principal, of one hash, how long ended ones are kept (ms)
-- Returns 1 when it was created, 2 when it exists, 0 when there is no agent, -1 when it would have ended, -2 and -3 beyond a limit
local base, id, hash = ARGV[1], ARGV[3], KEYS[1]
local now = redis_ms() + ARGV[2]
if redis.call('HEXISTS', hash, id) == 1 then return 2 end
local agent = redis.call('HMGET', KEYS[2], 'created_at', 'deleting')
if not agent[1] or agent[2] then return 0 end
local ends = tonumber(ARGV[9]) or nil
if ARGV[10] ~= '' then
  local after = now + tonumber(ARGV[10])
  ends = ends and math.min(ends, after) or after
end
if ends and ends <= now then return -1 end

-- The rules to drop, to make room: those that ended long ago and, above the limit, those that ended first. Nil: even then
-- there is no room.
local function dropped(ids, most)
  local ended, some = {}, {}
  for _, one in ipairs(ids) do
    local place = string.match(redis.call('HGET', base .. ':rules', one) or '', '^%S+ %S+$')
    local at = place and ended_at(base .. ':rules:' .. string.gsub(place, ' ', ':'), one, now)
    if at then ended[#ended + 1] = { at, one } end
  end
  table.sort(ended, function(a, b) return a[1] < b[1] end)
  for _, one in ipairs(ended) do
    if #ids - #some < most and one[1] > now - tonumber(ARGV[14]) then break end
    some[#some + 1] = one[2]
  end
  return #ids - #some < most and some or nil
end
local by, list = ARGV[7], base .. ':list:rules:'
local own = {}
for _, field in ipairs(redis.call('HKEYS', hash)) do
  if string.match(field, '^rul_%w+$') then own[#own + 1] = field end
end
local of_principal = dropped(redis.call('ZRANGE', list .. 'by:' .. by, 0, -1), tonumber(ARGV[12]))
if not of_principal then return -2 end
local of_agent = dropped(own, tonumber(ARGV[13]))
if not of_agent then return -3 end
for _, ids in ipairs({ of_principal, of_agent }) do
  for _, one in ipairs(ids) do drop_rule(base, one) end
end

redis.call('HSET', hash, id, ARGV[4], id .. ':at', string.format('%.0f', now))
if ends then redis.call('HSET', hash, id .. ':until', string.format('%.0f', ends)) end
if ARGV[11] ~= '' then redis.call('HSET', hash, id .. ':max', ARGV[11]) end
redis.call('HSETNX', hash, 'version', string.format('%.0f', now))
redis.call('HINCRBY', hash, 'version', 1)
redis.call('HSET', base .. ':rules', id, ARGV[5] .. ' ' .. ARGV[6])
for _, index in ipairs({ 'all', 'by:' .. by, 'for:' .. ARGV[5] }) do redis.call('ZADD', list .. index, now, id) end
redis.call('ZADD', list .. 'token:' .. ARGV[8], now, id)
return 1
