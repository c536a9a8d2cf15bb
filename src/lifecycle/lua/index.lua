-- The sets by which delegations are found.

-- The keys of the lists that it is in.
function lists()
  local names = { 'all', 'target:' .. record.target, 'delegator:' .. record.delegator,
    'context:' .. record.context_id }
  if record.parent_id then names[#names + 1] = 'parent:' .. record.parent_id end
  for i, name in ipairs(names) do names[i] = base .. ':list:' .. name end
  return names
end

-- Moves the delegation between the target's sets by state, and schedules the sweep's next look at it.
function index()
  schedule()
  local to = record.state
  if from and from ~= to then redis.call('ZREM', live_set(from), cmd.id) end
  if from ~= to and not finishes then
    redis.call('ZADD', live_set(to), digits(to == 'submitted' and record.ready_at or now), cmd.id)
  end
end
