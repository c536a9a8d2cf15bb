-- Creating a delegation, and finishing it.

function create()
  record = { version = 0, ticket = 0, kept = 0, ends = '' }
  record.attempt = 1
  record.max_attempts = cmd.max_attempts or settings('max_attempts').max_attempts
  record.priority = cmd.priority
  record.fence = 0
  record.created_at = now
  record.target = cmd.target
  record.delegator = cmd.delegator
  record.context_id = cmd.context_id
  record.traceparent = cmd.traceparent
  record.redrive_of = cmd.redrive_of
  record.idempotency = cmd.idempotency
  record.bytes = 0
  record.callbacks = cmd.callbacks
  record.has_result_schema = cmd.has_result_schema
  record.keeps_children = cmd.keeps_children
  record.budget = cmd.budget
  record.counted = cmd.counted
  record.line = cmd.line
  if cmd.parent_id then
    record.parent_id = cmd.parent_id
    record.root_id = cmd.root_id
    record.root_delegator = cmd.root_delegator
    show('parent_id', quoted(cmd.parent_id))
  end
  for _, name in ipairs(lists()) do redis.call('ZADD', name, digits(now), cmd.id) end
end

function set_deadlines(delay)
  record.not_before_at = delay > 0 and record.ready_at or nil
  record.deadline_at = math.min(cmd.deadline_at or record.ready_at + cmd.ttl_ms, cmd.latest_at or math.huge)
  record.start_by = cmd.start_within_ms and record.ready_at + cmd.start_within_ms or nil
  status = delay > 0 and 'delayed' or 'queued'
  if delay > 0 then show('not_before_at', quoted(iso(record.ready_at))) end
end

function finish()
  -- Events are counted in the share once, here, so that progress stays cheap. `kept_bytes` covers the first ones.
  keeps = keeps + LIMITS.event_copies * (record.event_bytes or 0) +
    LIMITS.kept_event_bytes * math.max(0, record.version + 1 - LIMITS.kept_events)
  record.finished_at = now
  if rule.cancels_remote_task and redis.call('HEXISTS', key, 'checkpoint') == 1 then
    record.orphaned = 1
    record.calls_at = now + LIMITS.check_ms
  end
  if failure then
    local json = cmd.error or failure == 'budget_exceeded' and over_budget_json() or failure_json(failure)
    store('error', json)
    show('error', json)
  end
  if record.state == 'completed' then show('duration_ms', digits(now - record.created_at)) end
  show('attempt', digits(record.attempt))
  if record.used then show('usage', record.used) end
  -- A cancel says itself whether it reaches them.
  if record.children and (failure == 'budget_exceeded' or record.budget and string.find(record.budget, '"exceeded":true', 1, true)) then
    stop_tree()
  elseif record.children and record.state ~= 'completed' and move ~= 'cancel' then
    cascade_to_children(record.delegator)
  end
  if record.expected then
    record.reports = 1
    record.follow_at = now + LIMITS.follow_ms
  end
  record.behind = nil
  if record.last_ms and cmd.reply_hash then remember_worker() end
  if record.unseen then redis.call('DEL', key .. ':unseen') end
  if record.secret_bytes then
    redis.call('DEL', key .. ':secrets')
    record.bytes = record.bytes - record.secret_bytes
    keeps = keeps - record.secret_bytes
    record.secret_bytes = nil
  end
end
