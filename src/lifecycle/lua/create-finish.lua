-- Creating a delegation, and finishing it.

function create()
  record = { version = 0, ticket = 0, kept = 0, ends = '' }
  put('attempt', 1)
  put('max_attempts', cmd.max_attempts or settings('max_attempts').max_attempts)
  put('priority', cmd.priority)
  put('fence', 0)
  put('releases', 0)
  put('created_at', now)
  put('target', cmd.target)
  put('delegator', cmd.delegator)
  put('context_id', cmd.context_id)
  put('bytes', 0)
  if cmd.callbacks then put('callbacks', cmd.callbacks) end
  if cmd.parent_id then
    put('parent_id', cmd.parent_id)
    show('parent_id', quoted(cmd.parent_id))
  end
  for _, name in ipairs(lists()) do redis.call('ZADD', name, digits(now), cmd.id) end
end

function set_deadlines(delay)
  put('not_before_at', delay > 0 and record.ready_at or '')
  put('deadline_at', cmd.deadline_at or record.ready_at + cmd.ttl_ms)
  put('start_by', cmd.start_within_ms and record.ready_at + cmd.start_within_ms or '')
  status = delay > 0 and 'delayed' or 'queued'
end

function finish()
  -- Events are counted in the share once, here, so that progress stays cheap. `kept_bytes` covers the first ones.
  keeps = keeps + LIMITS.event_copies * (record.event_bytes or 0) +
    LIMITS.kept_event_bytes * math.max(0, record.version + 1 - LIMITS.kept_events)
  put('finished_at', now)
  if failure then
    put('error', failure_json(failure))
    show('error', failure_json(failure))
  end
  if record.state == 'completed' then show('duration_ms', digits(now - record.created_at)) end
  show('attempt', digits(record.attempt))
  if record.unseen then redis.call('DEL', key .. ':unseen') end
  if record.secret_bytes then
    redis.call('DEL', key .. ':secrets')
    put('bytes', record.bytes - record.secret_bytes)
    keeps = keeps - record.secret_bytes
    put('secret_bytes', '')
  end
end
