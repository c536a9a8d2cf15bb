-- Shares: the bytes that each delegator's delegations keep in this shard, limited by the command's `max_kept`.

-- Adds bytes to the share of a delegator.
function add_kept(delegator, bytes)
  local total = redis.call('HINCRBY', base .. ':kept', delegator, digits(bytes))
  if total <= 0 then redis.call('HDEL', base .. ':kept', delegator) end
end

-- Bytes of a delegator's idempotency keys that outlive their delegations: those of today, and those of yesterday. Older
-- keys have expired.
function read_keys_kept(delegator)
  local known = redis.call('HGET', base .. ':kept:keys', delegator) or ''
  local at, newer, older = string.match(known, '^(%d+) (%d+) (%d+)$')
  local days = math.floor(now / LIMITS.idempotency_ms) - (tonumber(at) or 0)
  if days == 0 then return tonumber(newer), tonumber(older) end
  return 0, days == 1 and tonumber(newer) or 0
end

-- The last guard: the bytes that the move adds to its delegator's share.
function guard_share()
  local is_new, config = move == 'submit', #(cmd.push_config or '')
  if is_new then
    keeps = LIMITS.kept_bytes + config
    for i = 5, 3 + 2 * cmd.fields, 2 do keeps = keeps + #argv[i] end
  else
    -- A message is in its delegation's history and in its events.
    keeps = growth + LIMITS.event_copies * #history + (rule.to == 'asked' and LIMITS.event_copies or 1) * bodies
    -- The ids that it waits for are in a field and in a hash, which needs more for each.
    if cmd.awaits then keeps = keeps + 4 * #cmd.awaits end
  end
  if not cmd.max_kept then return nil end
  local delegator = record.delegator or cmd.delegator
  local total = tonumber(redis.call('HGET', base .. ':kept', delegator) or 0)
  if is_new then
    local newer, older = read_keys_kept(delegator)
    total = total + newer + older
  end
  if total + keeps + (is_new and 0 or config) <= cmd.max_kept then return nil end
  return { kind = 'share', kept = total, max_kept = cmd.max_kept }
end

-- Adds the move's bytes to the record and to its delegator's share.
function count_kept()
  record.kept = record.kept + keeps
  add_kept(record.delegator, keeps)
end
