-- Rules that answer a question; engine/rules/rules.lua has their layout. The gateway compares the rules with the question, and
-- names those that it answers by and the versions that it read. The step that answers decides here whether they still hold.

function rules_of(scope) return base .. ':rules:' .. record.target .. ':' .. scope end

-- Refuses a command that depends on rules, because one of them answers or none denies, if they have changed since the gateway
-- read them.
function guard_rules()
  local refusal = { kind = 'rules_changed' }
  for at, scope in ipairs({ 'all', record.delegator }) do
    if (redis.call('HGET', rules_of(scope), 'version') or '') ~= cmd.rules_seen[at] then return refusal end
  end
  if not cmd.rules then return nil end
  local doc = redis.call('HGET', base .. ':agent:' .. record.target, 'doc')
  if not doc or cjson.decode(doc).approvals == 'person' then return refusal end
  for rule_id, use in pairs(uses_of_rules()) do
    local found = redis.call('HMGET', rules_of(use.scope), rule_id, rule_id .. ':revoked', rule_id .. ':until',
      rule_id .. ':max', rule_id .. ':uses')
    if not found[1] or found[2] or found[3] and now >= tonumber(found[3]) then return refusal end
    if found[4] and tonumber(found[5] or 0) + use.count > tonumber(found[4]) then return refusal end
  end
end

-- How many actions each rule decides. `cmd.rules` has a scope and an id for each.
function uses_of_rules()
  local uses = {}
  for _, place in ipairs(cmd.rules) do
    local scope, rule_id = string.match(place, '^(%S+) (%S+)$')
    local use = uses[rule_id] or { scope = scope, count = 0 }
    use.count = use.count + 1
    uses[rule_id] = use
  end
  return uses
end

function count_rules()
  for rule_id, use in pairs(uses_of_rules()) do
    local hash = rules_of(use.scope)
    redis.call('HINCRBY', hash, rule_id .. ':uses', digits(use.count))
    local lines = { digits(now) .. ' ' .. cmd.id .. ' ' .. cmd.interrupt_id }
    for line in string.gmatch(redis.call('HGET', hash, rule_id .. ':last') or '', '[^\n]+') do
      if #lines < LIMITS.rule_uses then lines[#lines + 1] = line end
    end
    redis.call('HSET', hash, rule_id .. ':last', table.concat(lines, '\n'))
  end
end
