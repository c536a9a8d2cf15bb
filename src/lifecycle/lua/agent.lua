-- The target agent: its settings, its queue, and whether it may get work.

-- Its settings with these names, which are numbers; false: not set. They are read with one command, unless the first
-- is known. A deleted agent has the defaults.
function settings(name, ...)
  local agent = record.target or cmd.target
  local known = known_settings[agent] or {}
  known_settings[agent] = known
  if known[name] == nil then
    local names = { name, ... }
    local values = redis.call('HMGET', base .. ':agent:' .. agent, unpack(names))
    local defaults = agent_defaults()
    for i, setting in ipairs(names) do known[setting] = tonumber(values[i] or '') or defaults[setting] or false end
  end
  return known
end

function queue() return base .. ':q:' .. (record.target or cmd.target) end

-- The key of the target's delegations in this state.
function live_set(state)
  if state == 'input_required' or state == 'auth_required' then state = 'interrupted' end
  return base .. ':live:' .. (record.target or cmd.target) .. ':' .. state
end

-- Why the target gets no work now; nil when it does.
function blocked()
  local agent = settings('paused', 'deleting', 'max_working', 'lease_ms', 'serial', 'sticky_ms')
  if agent.paused == 1 or agent.deleting then return 'paused' end
  if agent.max_working and redis.call('ZCARD', live_set('working')) >= agent.max_working then return 'max_working' end
  return nil
end
