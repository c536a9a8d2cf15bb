-- The timers of a delegation. `look_at_timers`, generated from TIMERS in timers.ts, calls `timer` for each that runs, the
-- strongest first: it decides when several have passed.

-- Notes a timer: `soonest` is when the next one falls due, `due` what the strongest that has passed asks for.
function timer(at, what, code)
  if not at then return end
  if not soonest or at < soonest then soonest = at end
  if not due and now >= at then due, due_code = what, code end
end

-- Records when the sweep must look at it next.
function schedule()
  look_at_timers()
  redis.call('ZADD', base .. ':due', digits(soonest), cmd.id)
end

-- Enters when the sweep looks for its ticket again: after as long as it has waited, so that a long wait costs few looks.
function check_later()
  local waited = math.max(LIMITS.check_ms, now - record.ready_at)
  record.check_at = now + math.min(LIMITS.check_max_ms, waited)
  redis.call('HSET', key, 'check_at', record.check_at)
  schedule()
end
