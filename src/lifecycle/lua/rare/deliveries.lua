-- Pending deliveries, continued: claimed, made, and the children of a canceled delegation. See pending.lua.

-- Claims the deliveries for the caller, for a limited time.
function claim_pending()
  record.follow_at = now + LIMITS.follow_ms
  save()
  schedule()
  return refusal_answer({ kind = 'pending', cascade = record.cascade, claimed_until = record.follow_at,
    pending_events = pending_events() })
end

function cascade_to_children()
  if not cmd.cascade or not record.children then return end
  record.cascade = cmd.cascade
  record.follow_at = now + LIMITS.follow_ms
end

-- Removes the deliveries that the caller has made, or extends its claim.
function record_delivered()
  if cmd.cascaded then record.cascade = nil end
  if cmd.claim then record.follow_at = now + LIMITS.follow_ms end
  if cmd.notified then record.notified_seq = math.max(cmd.notified, record.notified_seq or 0) end
end
