-- Chooses the delegation and the move: the command's, a timer's, or the one by which the table replaces it.
-- A function that returns an answer ends the script without a move.

function start(first_key, given)
  argv, key = given, first_key
  cmd = cjson.decode(argv[1])
  base, now, move = cmd.base, time_ms + cmd.clock, cmd.move
  rule, failure, full, spends, dropped, event, event_id, taken_key = nil, nil, nil, nil, nil, nil, nil, nil
  chunks, artifacts, refs, growth, ref_bytes, calls_back = nil, nil, nil, 0, 0, false
  if cmd.stamp then stamp() end
end

-- Reads the record. A submit's key is almost always new; a take finds its record by the first ticket of the queue.
function find_record(made)
  if move == 'submit' then
    taken_key = redis.call('EXISTS', key) == 1
    record = taken_key and read_record(key) or {}
    if record.unpublished then pcall(publish_late) end
    return nil
  end
  record = {}
  local nothing = cmd.take and take_ticket(made)
  if nothing then return refusal_answer(nothing) end
  record = made and made.id == cmd.id and made.record or read_record(key)
  if not record.state then
    redis.call('ZREM', base .. ':due', cmd.id)
    return refusal_answer({ kind = 'missing' })
  end
  if move == 'erase' and not is_terminal(record.state) then return refusal_answer({ kind = 'state' }) end
  if record.unpublished then pcall(publish_late) end
end

-- The row of the move; another move may take its place.
function apply_table()
  rule = row(move)
  local left = record.state and record.attempt < record.max_attempts
  if rule.retry_as and cmd.retryable and left then replace_by(rule.retry_as) end
  spends, full = rule.spends, record.state and reached_limit()
  if full and rule.worn_out then
    -- Returned work can be leased and returned again, with more events each time. Beyond the limit a return costs an
    -- attempt, so that this ends.
    spends = left
    if not left then
      failure = 'attempts_exhausted'
      replace_by(rule.worn_out)
    end
  elseif full and rule.degrades_to and not cmd.chunks then
    dropped = rule.status
    replace_by(rule.degrades_to)
  end
  if rule.event_only then
    history, chunks, bodies = '', nil, 0
  else
    history, chunks, bodies = argv[3], cmd.chunks, cmd.bytes or 0
  end
end

function replace_by(name) move, rule = name, row(name) end

function reached_limit()
  if record.version >= LIMITS.delegation_events then return 'delegation_events' end
  if (record.event_bytes or 0) >= LIMITS.event_bytes then return 'event_bytes' end
end
