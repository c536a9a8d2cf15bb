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

-- Makes room: drops those that ended long ago, and beyond the limit the one that ended first.
local function room(ids, most)
  local ended, left = {}, #ids
  for _, one in ipairs(ids) do
    local scope = string.match(redis.call('HGET', base .. ':rules', one) or '', '^%S+ %S+$')
    local at = scope and ended_at(base .. ':rules:' .. string.gsub(scope, ' ', ':'), one, now)
    if at then ended[#ended + 1] = { at, one } end
  end
  table.sort(ended, function(a, b) return a[1] < b[1] end)
  for _, one in ipairs(ended) do
    if left < most and one[1] > now - tonumber(ARGV[14]) then break end
    left = left - drop_rule(base, one[2])
  end
  return left < most
end
local by, list = ARGV[7], base .. ':list:rules:'
if not room(redis.call('ZRANGE', list .. 'by:' .. by, 0, -1), tonumber(ARGV[12])) then return -2 end
local own = {}
for _, field in ipairs(redis.call('HKEYS', hash)) do
  if string.match(field, '^rul_%w+$') then own[#own + 1] = field end
end
if not room(own, tonumber(ARGV[13])) then return -3 end

redis.call('HSET', hash, id, ARGV[4], id .. ':at', string.format('%.0f', now))
if ends then redis.call('HSET', hash, id .. ':until', string.format('%.0f', ends)) end
if ARGV[11] ~= '' then redis.call('HSET', hash, id .. ':max', ARGV[11]) end
redis.call('HSETNX', hash, 'version', string.format('%.0f', now))
redis.call('HINCRBY', hash, 'version', 1)
redis.call('HSET', base .. ':rules', id, ARGV[5] .. ' ' .. ARGV[6])
for _, index in ipairs({ 'all', 'by:' .. by, 'for:' .. ARGV[5] }) do redis.call('ZADD', list .. index, now, id) end
if ARGV[8] ~= '' then redis.call('ZADD', list .. 'token:' .. ARGV[8], now, id) end
return 1
