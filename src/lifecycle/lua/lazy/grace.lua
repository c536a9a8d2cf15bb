-- Grace: a lease that ran out while the broker was away gets one more period. An outage is an interval without a sign of
-- life of any gateway in this shard; engine/upkeep/outages.lua records it.

-- How long the holder has until this instant, from its last call or from the end of an outage.
function period_of(field) return field == 'confirm_by' and record.confirm_ms or record.lease_ms end

-- The end of the newest outage before which this instant was ahead, unless one more period has passed since that end.
-- Nil if there is none. After a grace the instant is that period later, so an outage extends a lease once.
function end_of_outage(field)
  if (record.graces or 0) >= LIMITS.graces then return nil end
  local at, period, found = record[field], period_of(field), nil
  local function look(from, to)
    -- A clock that was wrong and set back leaves an outage that ends in the future.
    if from < at and at < to + period and to > (found or 0) and to <= now then found = to end
  end
  for _, outage in ipairs(redis.call('LRANGE', base .. ':outages', 0, -1)) do
    local from, to = string.match(outage, '^(%d+) (%d+)$')
    look(tonumber(from), tonumber(to))
  end
  -- A command that was on its way when Redis stopped may run before the outage is recorded.
  local alive = cmd.outage_ms and tonumber(redis.call('GET', base .. ':alive') or '')
  if alive and time_ms - alive >= cmd.outage_ms then look(now - (time_ms - alive), now) end
  return found
end

function add_grace()
  local back = record.confirm_by and now >= record.confirm_by and end_of_outage('confirm_by') or
    end_of_outage('lease_expires_at')
  if record.confirm_by then record.confirm_by = math.max(record.confirm_by, back + period_of('confirm_by')) end
  record.lease_expires_at = math.max(record.lease_expires_at, back + record.lease_ms)
  record.graces = (record.graces or 0) + 1
  show('attempt', digits(record.attempt))
  show('until', quoted(iso(back)))
  show('expires_at', quoted(iso(record.lease_expires_at)))
end
