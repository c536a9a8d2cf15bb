-- Rules, written by these scripts; lazy/rules.lua of the lifecycle checks them and counts their uses. The hash of an agent
-- and a scope has for each rule:
--   <id>          what never changes, as JSON
--   <id>:at       when it was created, ms; <id>:until and <id>:max: when it ends, and after how many uses, if it does
--   <id>:uses     how often it was used; <id>:last: lines of its newest uses
--   <id>:revoked  when it was revoked, ms
-- and `version`, a number that begins with the time and grows when a rule is created, revoked or dropped. A gateway that
-- answers by a rule names the version that it read, so a new or revoked rule makes it read again.

-- When the rule ended, ms; nil while it is active.
local function ended_at(hash, id, now)
  local found = redis.call('HMGET', hash, id .. ':revoked', id .. ':max', id .. ':uses', id .. ':last', id .. ':until')
  if found[1] then return tonumber(found[1]) end
  if found[2] and tonumber(found[3] or 0) >= tonumber(found[2]) then
    return tonumber(string.match(found[4] or '', '^(%d+)')) or now
  end
  if found[5] and tonumber(found[5]) <= now then return tonumber(found[5]) end
end

local function drop_rule(base, id)
  local agent, scope = string.match(redis.call('HGET', base .. ':rules', id) or '', '^(%S+) (%S+)$')
  if not agent then return 0 end
  local hash, list = base .. ':rules:' .. agent .. ':' .. scope, base .. ':list:rules:'
  local doc = cjson.decode(redis.call('HGET', hash, id) or '{}')
  for _, index in ipairs({ 'all', 'by:' .. (doc.by or ''), 'token:' .. (doc.token or ''), 'for:' .. agent }) do
    redis.call('ZREM', list .. index, id)
  end
  redis.call('HDEL', hash, id, id .. ':at', id .. ':until', id .. ':max', id .. ':uses', id .. ':last', id .. ':revoked')
  redis.call('HDEL', base .. ':rules', id)
  redis.call('HINCRBY', hash, 'version', 1)
  if redis.call('HLEN', hash) == 1 then redis.call('DEL', hash) end
  return 1
end
