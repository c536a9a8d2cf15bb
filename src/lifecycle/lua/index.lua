-- The sets by which delegations are found.

-- A context in the name of a key: its hash, unless it is short and plain (redis/keys.ts has the same rule).
function context_name()
  local id = record.context_id
  if #id <= 128 and not id:find('[^A-Za-z0-9._:-]') then return id end
  return '#' .. redis.sha1hex(id)
end

-- The keys of the lists that it is in.
function lists()
  local names = { 'all', 'target:' .. record.target, 'delegator:' .. record.delegator,
    'context:' .. context_name() }
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
  if settled then list_settled() end
end
