-- Pending deliveries, continued: claimed, made, and the children of a delegation that did not complete. See pending.lua.

-- Claims the deliveries for the caller, for a limited time.
function claim_pending()
  record.follow_at = now + LIMITS.follow_ms
  save()
  schedule()
  return refusal_outcome({ kind = 'pending', cascade = record.cascade, cascade_all = record.cascade_all, claimed_until = record.follow_at,
    expecting = record.expecting, reports_to = record.reports and record.parent_id,
    spends_to = record.spends and record.parent_id, spent = record.spends and spent_text(read_budget()),
    pending_events = pending_events() })
end

-- The caller looks whether the jobs of the queued calls are still there.
function claim_calls()
  record.calls_at = now + check_pause(record.updated_at)
  save()
  schedule()
  return refusal_outcome({ kind = 'pending', calls_at = record.calls_at })
end

-- `by`: the principal in whose name they are canceled. `always`: also if the delegation keeps its children.
-- `all`: also those of parts that keep theirs, and of parts that have ended.
function cascade_to_children(by, always, all)
  if all then return stop_tree() end
  if not by or not record.children or (record.keeps_children and not always) then return end
  record.cascade = by
  record.follow_at = now + LIMITS.follow_ms
end

-- Removes the deliveries that the caller has made, or extends its claim.
function record_delivered()
  if cmd.cascaded then record.cascade, record.cascade_all = nil, nil end
  -- A later wait has a greater fence.
  if cmd.expected and cmd.expected == record.expecting then record.expecting = nil end
  if cmd.reported then record.reports = nil end
  -- More may have been used since.
  if cmd.spent and cmd.spent == spent_text(read_budget()) then record.spends = nil end
  if cmd.claim then record.follow_at = now + LIMITS.follow_ms end
  if cmd.notified then
    record.notified_seq = math.max(cmd.notified, record.notified_seq or 0)
    record.calls_at = now + LIMITS.check_ms
  end
  for _, seq in ipairs(cmd.called or {}) do redis.call('HDEL', key, 'notify:' .. seq) end
  -- The caller saw that this callback is the last one, and nobody else gets its events.
  local is_last = cmd.last and record.callbacks == 1 and not record.orphaned and tonumber(cmd.called[1]) == record.notify_seq
  -- Or it saw no call at all, and none was queued since.
  if is_last or cmd.settled and cmd.settled == record.calls_at then record.calls_at = nil end
  if cmd.task_canceled then record.orphaned = nil end
end
