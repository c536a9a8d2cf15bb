-- The commands `due` and `erase`.

-- For the command `due`, chooses the move whose timer has passed; for `erase`, deletes the delegation.
function choose_due_move()
  if move == 'erase' then return has_pending() and claim_pending() or remove() end
  look_at_timers()
  if due == 'deliver' then return claim_pending() end
  if due == 'calls' then return claim_calls() end
  if due == 'remove' then return remove() end
  if not due then
    redis.call('ZADD', base .. ':due', digits(soonest), cmd.id)
    return refusal_outcome({ kind = 'not_due' })
  end
  if due == 'check' then
    record.check_at = now + check_pause(math.max(record.ready_at, record.awaits_since or 0))
    if record.state == 'awaiting_children' then return look_again() end
    check_ageing()
    local is_waiting = record.behind and is_behind()
    if not record.behind or is_waiting then
      save()
      schedule()
      return refusal_outcome({ kind = is_waiting and 'behind' or 'check' })
    end
    due = 'admit'
  end
  if due ~= 'expire' or not record.interrupt_id then
    cmd.error = nil
  elseif not cmd.error or cmd.of_question ~= record.interrupt_id or cmd.given ~= votes_given() or cmd.code ~= due_code then
    return unanswered()
  end
  move, failure = due, due_code
  if record.lease_expires_at then cmd.fence = record.fence end
  if move == 'ask_budget' then
    word_question()
    -- Without room for the question, nobody can be asked.
    if (record.bytes or 0) + #argv[3] > LIMITS.delegation_bytes then
      move, failure, argv[3] = 'exceed', 'budget_exceeded', ''
    end
  end
end

-- Nobody answered the open question in time. Who was notified is in another slot, so the gateway reads it, and repeats the
-- command with the error for this question, with these votes. Not for this version: its holder may report all the time.
function unanswered()
  return refusal_outcome({
    kind = 'unanswered', code = due_code, interrupt_id = record.interrupt_id,
    open_ms = record.interrupt_expires_at - record.interrupt_raised_at,
    needed = record.votes_needed, given = votes_given(),
  })
end

function votes_given() return record.votes and #cjson.decode(record.votes) end

-- As long as the wait so far, so checks become rarer.
function check_pause(since) return math.min(LIMITS.check_max_ms, math.max(LIMITS.check_ms, now - since)) end
