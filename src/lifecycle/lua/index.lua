-- The sets that a delegation is found by.

-- The lists, newest first.
function lists()
  local names = { 'all', 'target:' .. record.target, 'delegator:' .. record.delegator,
    'context:' .. record.context_id }
  if record.parent_id then names[#names + 1] = 'parent:' .. record.parent_id end
  for i, name in ipairs(names) do names[i] = base .. ':list:' .. name end
  return names
end

-- Moves it between the sets of the target's live delegations, and records when the sweep looks at it next.
function index()
  schedule()
  local to = record.state
  if from == to then return end
  if from then redis.call('ZREM', live_set(from), cmd.id) end
  if not ends then
    redis.call('ZADD', live_set(to), digits(to == 'submitted' and record.ready_at or now), cmd.id)
  end
end
