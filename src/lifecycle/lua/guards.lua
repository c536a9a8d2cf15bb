-- Guards: each returns a refusal, or nothing. They change nothing. Their order decides which refusal the caller gets
-- when several apply. A refusal with `extends_lease` still extends the lease, because the call shows that the holder is
-- alive.

-- For a submit: nothing is stored under its id, and its target accepts work.
function guard_submit()
  if not rule.needs_unused then return nil end
  if record.state then return { kind = 'exists' } end
  if cmd.redrive_of and redis.call('HEXISTS', base .. ':d:' .. cmd.redrive_of, 'redrive_erased') == 1 then
    return { kind = 'deleted' }
  end
  -- A mark in place of the record says why none may be created; see engine/delegations/idempotency.ts.
  if not known.all then return { kind = redis.call('HEXISTS', key, 'voided') == 1 and 'voided' or 'deleted' } end
  -- The last seven are for the ticket and for a `take` in the same call, so that one command reads them all.
  local agent = settings('created_at', 'deleting', 'max_attempts', 'max_waiting', 'paused', 'max_working', 'lease_ms',
    'serial', 'sticky_ms', 'ageing_ms', 'weight:' .. cmd.delegator)
  if rule.needs_agent and (not agent.created_at or agent.deleting) then return { kind = 'no_agent' } end
  -- What its sender decided about the target holds for this agent only.
  if cmd.agent_created_at and agent.created_at ~= cmd.agent_created_at then return { kind = 'other_agent' } end
  if rule.needs_parent and cmd.parent_id and redis.call('EXISTS', base .. ':tombstone:' .. cmd.id) == 1 then
    return { kind = 'tombstone' }
  end
  if rule.needs_room and redis.call('ZCARD', live_set('submitted')) >= agent.max_waiting then
    return { kind = 'full' }
  end
end

-- The caller holds the newest lease. A move that needs no holder, such as a cancel, is also fenced if its caller names
-- a lease.
function guard_holder()
  local fenced = rule.needs_holder or rule.needs_lapsed or (cmd.fence ~= nil and cmd.move ~= 'due')
  if not fenced then return nil end
  -- Another agent's lease does not exist for the caller.
  if cmd.agent and cmd.agent ~= record.target then return { kind = 'no_lease' } end
  local holds = record.lease_expires_at and record.fence == cmd.fence
  -- A question that is held may be asked again.
  if holds and not (rule.to == 'asked' and record.interrupt_id) then return nil end
  local reclaimable = record.state == 'submitted' and record.fence == cmd.fence and record.lapsed == cmd.fence
  if rule.needs_lapsed and reclaimable then return nil end
  if cmd.fence > record.fence or cmd.fence < 1 then return { kind = 'no_lease' } end
  local reason = not holds and lost_reason(string.sub(record.ends, cmd.fence, cmd.fence))
  if rule.to == 'asked' and (holds or reason == 'interrupted') then
    local asked = asked_by_lease(cmd.fence)
    if asked.id == cmd.interrupt_id or (asked.hash and asked.hash == cmd.reply_hash) then
      return { kind = 'duplicate', interrupt_id = asked.id, extends_lease = holds }
    end
  end
  -- Another question is held, but this one may be answered already.
  if holds then return guard_repeat() end
  if cmd.reply_hash and record.closed_by == cmd.fence and record.reply_hash == cmd.reply_hash then
    return { kind = 'duplicate' }
  end
  return { kind = 'lease', reason = reason, reclaimable = reclaimable or nil }
end

-- The state, and the simple guards of the table.
function guard_state()
  if record.state and not rule.from[record.state] then return { kind = 'state' } end
  if rule.needs_ticket and cmd.ticket ~= record.ticket then return { kind = 'ticket' } end
  if rule.needs_ready then
    -- A ticket that is kept for a worker is ready for it.
    local ready_at = cmd.worker_id == (record.kept_for or record.worker_id) and record.ready_at or ticket_at()
    if now < ready_at then return { kind = 'not_ready', ready_at = ready_at } end
  end
  -- The sweep stops it soon.
  if rule.needs_in_budget and record.stop_at and now >= record.stop_at then return { kind = 'over_budget' } end
  -- A take checks this before it takes the ticket.
  local why = rule.needs_not_blocked and not cmd.take and blocked()
  if why then return { kind = 'blocked', why = why } end
  if rule.needs_first and (record.behind or move == 'admit' or (not record.line and settings('serial').serial)) then
    local refusal = guard_first()
    if refusal then return refusal end
  end
  -- Only a gateway can check it: the answer has the record with the schema, and the gateway sends the command again.
  if rule.needs_result and record.has_result_schema and not cmd.checked then return { kind = 'unchecked' } end
  if rule.needs_due and cmd.move ~= 'due' then return { kind = 'not_due' } end
  if rule.needs_attempts_left and record.attempt >= record.max_attempts then return { kind = 'attempts' } end
  if rule.needs_attempts_spent and record.attempt < record.max_attempts then return { kind = 'attempts' } end
end
