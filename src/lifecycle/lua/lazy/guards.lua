-- Guards that few moves need; the rows of those moves have `needs_lazy_guards`. See guards.lua.

-- Recognizes repeated commands, so that nothing is done twice.
function guard_repeat()
  if rule.needs_new_message and redis.call('HGET', key, 'said:' .. cmd.message_id) == cmd.message_hash then
    return { kind = 'duplicate' }
  elseif rule.needs_not_redriven and record.redriven_as and record.redriven_as ~= cmd.replaces then
    return { kind = 'redriven', redriven_as = record.redriven_as }
  elseif rule.needs_claim and cmd.claim and (not record.cascade or record.follow_at ~= cmd.claim) then
    return { kind = 'taken_over' }
  elseif rule.needs_new_wait then
    -- Checked here, after the holder: nobody else learns which delegations are its children.
    if cmd.others then return { kind = 'not_children' } end
    if cmd.round and waits_over() >= cmd.round then return { kind = 'waited', extends_lease = true } end
  elseif rule.needs_awaited then
    -- The time limit needs no child.
    local is_awaited = cmd.move == 'due' or redis.call('HGET', key .. ':awaits', cmd.child_id) == ''
    if not is_awaited then return { kind = 'not_awaited' } end
  elseif rule.needs_answered then
    local answers = answers_to(cmd.interrupt_id)
    if not answers or not cjson.decode(answers)[cmd.request_id] then return { kind = 'no_question' } end
    local used = redis.call('HGET', key, used_field())
    if used and used ~= use_of() then return { kind = 'used', extends_lease = true } end
  elseif rule.needs_unanswered then
    local ids, asked = cmd.answered_as or { cmd.interrupt_id }, asked_by_lease(cmd.fence)
    -- The id of a question without request ids depends on the number of answers before.
    if asked.id and asked.hash == cmd.reply_hash then ids[#ids + 1] = asked.id end
    for _, id in ipairs(ids) do
      local answers = answers_to(id)
      if answers then return { kind = 'answered', answers = answers, interrupt_id = id, extends_lease = true } end
    end
  end
  local refusal = rule.needs_votes and cmd.votes_seen and guard_votes()
  if refusal then return refusal end
  if rule.needs_rules and cmd.rules_seen then return guard_rules() end
end

-- Limits its push configs and its children.
function guard_slots()
  if rule.needs_push_slot and redis.call('HEXISTS', key .. ':pushes', cmd.push) == 0 and
    redis.call('HLEN', key .. ':pushes') >= LIMITS.pushes then
    return { kind = 'limit', limit = 'pushes' }
  end
  if rule.needs_child_slot and redis.call('SCARD', key .. ':children') >= LIMITS.children and
    redis.call('SISMEMBER', key .. ':children', cmd.child_id) == 0 then
    return { kind = 'limit', limit = 'children' }
  end
end
