-- Guards that few moves need; the rows of those moves have `needs_rare`. See guards.lua.

-- Recognizes repeated commands, so that nothing is done twice.
function guard_repeat()
  if rule.needs_new_message and redis.call('HGET', key, 'said:' .. cmd.message_id) == cmd.message_hash then
    return { kind = 'duplicate' }
  elseif rule.needs_not_redriven and record.redriven_as and record.redriven_as ~= cmd.replaces then
    return { kind = 'redriven', redriven_as = record.redriven_as }
  elseif rule.needs_claim and cmd.claim and (not record.cascade or record.follow_at ~= cmd.claim) then
    return { kind = 'taken_over' }
  elseif rule.needs_unanswered then
    for _, id in ipairs(cmd.answered_as or { cmd.interrupt_id }) do
      local answers = answers_to(id)
      if answers then return { kind = 'answered', answers = answers, interrupt_id = id, extends_lease = true } end
    end
  end
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
