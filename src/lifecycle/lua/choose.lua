-- Prepares a move: decodes the command, reads the record, and finds the move's row in the table. The table may replace
-- the move, for example a `fail` by a `retry`.

function start(first_key, args)
  argv, key = args, first_key
  cmd = cjson.decode(argv[1])
  base, now, move = cmd.base, time_ms + cmd.clock, cmd.move
  rule, failure, event_limit, spends, dropped, event, event_id = nil, nil, nil, nil, nil, nil, nil
  chunks, artifacts, refs, growth, ref_bytes, calls_back, settled = nil, nil, nil, 0, 0, false, nil
  known = {}
  if cmd.stamp then stamp() end
end

-- Reads the record, or returns the outcome of a command that ends here. A submit's key is almost always new; a take
-- finds its record by the first ticket of the queue.
function find_record(moved)
  if move == 'submit' then
    known.all = redis.call('EXISTS', key) == 0
    record = known.all and {} or read_record(key)
    if record.unpublished then pcall(publish_late) end
    return nil
  end
  record = {}
  local refusal = cmd.take and take_ticket(moved)
  if refusal then return refusal_outcome(refusal) end
  if moved and moved.id == cmd.id then
    record, known = moved.record, moved.known
  else
    record = read_record(key)
  end
  if not record.state then
    redis.call('ZREM', base .. ':due', cmd.id)
    return refusal_outcome({ kind = 'missing' })
  end
  if move == 'erase' and not is_terminal(record.state) then return refusal_outcome({ kind = 'state' }) end
  if record.unpublished then pcall(publish_late) end
end

-- Finds the row of the move, or of the move that replaces it.
function apply_table()
  rule = row(move)
  local attempt_left = record.state and record.attempt < record.max_attempts
  if rule.retry_as and cmd.retryable and attempt_left then replace_by(rule.retry_as) end
  if rule.last_as and (record.awaits_left or 0) <= 1 then replace_by(rule.last_as) end
  if rule.denied_as and cmd.denies_budget then
    failure = 'budget_exceeded'
    replace_by(rule.denied_as)
  elseif rule.voted_as and cmd.ballot and lacks_votes() then
    replace_by(rule.voted_as)
  elseif rule.held_as and is_held() then
    replace_by(rule.held_as)
  end
  spends, event_limit = rule.spends, record.state and reached_event_limit()
  if cmd.unable and rule.gives_up_as and (record.releases or 0) >= LIMITS.returns then
    failure = 'worker_unavailable'
    replace_by(rule.gives_up_as)
  elseif event_limit and rule.gives_up_as then
    -- Returned work can be leased and returned again, with more events each time. Beyond the limit a return costs an
    -- attempt, so that this ends.
    spends = attempt_left
    if not attempt_left then
      failure = 'attempts_exhausted'
      replace_by(rule.gives_up_as)
    end
  elseif event_limit and rule.degrades_to and not cmd.chunks then
    dropped = rule.status
    replace_by(rule.degrades_to)
  end
  history, chunks, bodies = argv[3], cmd.chunks, cmd.bytes or 0
  if rule.event_only or rule.repeats then history, bodies = '', 0 end
  if rule.event_only then chunks = nil end
end

-- Whether the asker of the open question still has its lease. A call of the holder shows that it does; otherwise the lease
-- must not have expired, unless the broker was away.
function is_held()
  if not (record.interrupt_id and record.lease_expires_at) then return false end
  if cmd.interrupt_id and cmd.interrupt_id ~= record.interrupt_id then return false end
  if rule.needs_holder or now < record.lease_expires_at then return true end
  local back = end_of_outage('lease_expires_at')
  return back and now < back + record.lease_ms
end

function replace_by(name) move, rule = name, row(name) end

-- The event limit that the delegation has reached, or nil.
function reached_event_limit()
  if record.version >= LIMITS.delegation_events then return 'delegation_events' end
  if (record.event_bytes or 0) >= LIMITS.event_bytes then return 'event_bytes' end
end
