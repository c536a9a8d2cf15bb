-- Builds the script's answer: the outcome, and the record if the command asks for it.

-- [outcome JSON, the shown fields, one per line, or '', history chunks, artifacts as a flat array, unseen follow-ups]
function answer(outcome)
  local reply = { cjson.encode(describe(outcome)), '', {}, {}, {} }
  if cmd.read and record.state then read_into(reply) end
  if outcome.kind == 'ok' and rule.lease == 'extend' and (record.unseen or 0) > 0 then
    reply[5] = redis.call('LRANGE', key .. ':unseen', 0, -1)
  end
  return reply
end

-- Adds the values of the record that every outcome has.
function describe(outcome)
  outcome.now, outcome.state, outcome.version = now, record.state, record.version
  outcome.target, outcome.ticket, outcome.fence = record.target, record.ticket, record.fence
  outcome.attempt, outcome.created_at = record.attempt, record.created_at
  if cmd.take then outcome.id = cmd.id end
  return outcome
end

function read_into(reply)
  reply[2] = shown(key)
  if record.spoken then reply[3] = redis.call('LRANGE', key .. ':history', 0, -1) end
  if record.artifact_bytes then reply[4] = redis.call('HGETALL', key .. ':artifacts') end
end

-- The answer of a move that was made.
function success_answer(ticketed) return answer(success_outcome(ticketed)) end

function success_outcome(ticketed)
  local outcome = { kind = 'ok', move = move, event_id = event_id, ready_at = record.ready_at,
    priority = record.priority, ticketed = ticketed, returned = record.returned == 1, old_ticket = old_ticket,
    lease_expires_at = record.lease_expires_at, cascade = record.cascade,
    claimed_until = record.cascade and record.follow_at, pending_events = pending_events(),
    progress_dropped = dropped and true }
  if rule.lease == 'grant' and record.secret_bytes then
    outcome.secrets = redis.call('HGETALL', key .. ':secrets')
  end
  return outcome
end
