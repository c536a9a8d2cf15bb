-- Shares: the bytes that each delegator's delegations keep in this shard, bounded by the command's `most`.

-- Adds bytes to the share of a delegator; returns its new total.
function add_kept(delegator, bytes)
  local total = redis.call('HINCRBY', base .. ':kept', delegator, digits(bytes))
  if total <= 0 then redis.call('HDEL', base .. ':kept', delegator) end
  return total
end

-- Bytes of a delegator's idempotency keys that outlive its delegations, of today and the day before; older keys have
-- expired. Adds `more` to today's.
function keys_kept(delegator, more)
  local name, day = base .. ':kept:keys', math.floor(now / LIMITS.idempotency_ms)
  local known = redis.call('HGET', name, delegator)
  if not known and more == 0 then return 0 end
  local at, newer, older = string.match(known or '', '^(%d+) (%d+) (%d+)$')
  at, newer, older = tonumber(at or day), tonumber(newer or 0), tonumber(older or 0)
  if day ~= at then newer, older = 0, day == at + 1 and newer or 0 end
  newer = newer + more
  if newer + older == 0 then
    redis.call('HDEL', name, delegator)
  elseif more > 0 then
    redis.call('HSET', name, delegator, table.concat({ digits(day), digits(newer), digits(older) }, ' '))
    redis.call('PEXPIRE', name, 2 * LIMITS.idempotency_ms)
  end
  return newer + older
end

-- The last guard: the bytes that the move adds to its delegator's share. A submit adds its bytes at once, and subtracts
-- them again if they are too many. Records of older versions do not count.
function guard_share()
  local config = #(cmd.push_config or '')
  if move ~= 'submit' then
    -- A message is in its delegation's history and in three streams.
    keeps = growth + LIMITS.event_copies * #history + (move == 'interrupt' and LIMITS.event_copies or 1) * bodies
    if not cmd.most or not record.kept then return nil end
    local total = tonumber(redis.call('HGET', base .. ':kept', record.delegator) or 0)
    if total + keeps + config <= cmd.most then return nil end
    return { kind = 'share', kept = total, most = cmd.most }
  end
  keeps = LIMITS.kept_bytes + config
  for i = 5, 3 + 2 * cmd.fields, 2 do keeps = keeps + #argv[i] end
  local total = add_kept(cmd.delegator, keeps)
  local more = cmd.most and keys_kept(cmd.delegator, 0) or 0
  if not cmd.most or total + more <= cmd.most then return nil end
  add_kept(cmd.delegator, -keeps)
  return { kind = 'share', kept = total - keeps + more, most = cmd.most }
end

-- Adds the move's bytes to the record and to its delegator's share.
function count_kept()
  put('kept', record.kept + keeps)
  if move ~= 'submit' then add_kept(record.delegator, keeps) end
end
