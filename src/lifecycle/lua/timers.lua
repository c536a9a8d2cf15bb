-- The timers of a delegation. `look_at_timers`, which is generated from timers.ts, calls `timer` for each that runs. If
-- several have passed, the first one decides.

-- Takes a timer into account: `soonest` is when the next one is due, `due` the action of the first that has passed.
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
