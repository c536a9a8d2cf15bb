-- Builds what the script returns: the outcome, and the record if the command asks for it. ../outcome.ts reads it.

-- For example: {"kind":"ok","now":1790000000000,"state":"working",…}, "working\n2\nscout\n…\n=\n…", [[history], [], []].
-- [outcome JSON, the record or '', its lists, the taker's if there is one]. The record is one text, a line for each field
-- that gateways read, because they take about 0.5 µs for each element of a reply. An own field that the
-- command stored is only marked, because its gateway has the text. The record's lists are [history chunks, artifacts as
-- a flat array, unseen follow-ups], or nothing if they are empty.
function with_record(json)
  local reply = { json, '', {} }
  if cmd.read and record.state then add_record(reply) end
  return reply
end

-- Adds the record to a reply.
function add_record(reply)
  reply[2] = gateway_fields()
  if not record.spoken and not record.artifact_bytes then return end
  reply[3] = {
    record.spoken and redis.call('LRANGE', key .. ':history', 0, -1) or {},
    record.artifact_bytes and redis.call('HGETALL', key .. ':artifacts') or {},
    {},
  }
end

-- The outcome of a refusal, or of a delegation that does not exist.
function refusal_outcome(outcome)
  outcome.now, outcome.state, outcome.version = now, record.state, record.version
  outcome.target, outcome.ticket, outcome.fence = record.target, record.ticket, record.fence
  outcome.attempt, outcome.created_at = record.attempt, record.created_at
  if cmd.take then outcome.id = cmd.id end
  return with_record(cjson.encode(outcome))
end

-- The outcome of a move that was made.
function success_outcome(ticketed)
  local reply = with_record(success_json(json_tail(ticketed)))
  if rule.lease == 'extend' and (record.unseen or 0) > 0 then
    reply[3] = { reply[3][1] or {}, reply[3][2] or {}, redis.call('LRANGE', key .. ':unseen', 0, -1) }
  end
  return reply
end

-- The end of a successful outcome's JSON. `ticketed`: whether the new ticket is in the queue; nil: there is no new one.
function json_tail(ticketed)
  if ticketed == nil then return '}' end
  return ticketed and ',"ticketed":true}' or ',"ticketed":false}'
end

-- The worker for which this move keeps the new ticket.
function kept_worker()
  return rule.queue == 'ticket' and rule.delay ~= 'unchanged' and record.others_at and record.kept_for or nil
end

-- A successful outcome's JSON. It is concatenated, because names and ids need no escapes and cjson takes three times as
-- long; cjson encodes only the members that are rarely there.
function success_json(tail)
  local rest = {}
  if record.cascade then
    rest.cascade, rest.cascade_all, rest.claimed_until = record.cascade, record.cascade_all, record.follow_at
  end
  rest.pending_events = pending_events()
  -- Only the move that makes it pending starts a delivery between records; the sweep repeats it.
  if finishes and record.reports then rest.reports_to = record.parent_id end
  if cmd.spent_now then rest.spends_to, rest.spent = record.parent_id, cmd.spent_now end
  if record.budget and rule.lease == 'extend' then rest.budget, rest.stop_at = record.budget, record.stop_at end
  rest.kept_for = kept_worker()
  if rule.queue == 'ticket' then rest.behind = record.behind end
  if cmd.usage then rest.used = added_usage() end
  if move == 'await' then
    rest.expecting, rest.awaits_left, rest.awaits_until = record.expecting, record.awaits_left, record.awaits_until
  end
  if move == 'use' then rest.answers = answers_to(cmd.interrupt_id) end
  if rule.lease == 'grant' and record.secret_bytes then rest.secrets = redis.call('HGETALL', key .. ':secrets') end
  return '{"kind":"ok","move":"' .. move .. '","now":' .. digits(now) .. ',"state":"' .. record.state ..
    '","version":' .. digits(record.version) .. ',"target":"' .. record.target .. '","ticket":' .. digits(record.ticket) ..
    ',"fence":' .. digits(record.fence) .. ',"attempt":' .. digits(record.attempt) ..
    ',"created_at":' .. digits(record.created_at) .. ',"ready_at":' .. digits(ticket_at()) ..
    ',"priority":' .. digits(priority_now()) .. (record.returned == 1 and ',"returned":true' or '') ..
    (cmd.take and ',"id":"' .. cmd.id .. '"' or '') .. (event_id and ',"event_id":"' .. event_id .. '"' or '') ..
    (old_ticket and ',"old_ticket":' .. digits(old_ticket) or '') ..
    (record.lease_expires_at and ',"lease_expires_at":' .. digits(record.lease_expires_at) or '') ..
    (dropped and ',"progress_dropped":true' or '') ..
    (next(rest) and ',' .. string.sub(cjson.encode(rest), 2, -2) or '') .. tail
end
