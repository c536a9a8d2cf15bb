-- Pending deliveries: canceling its children, and its events to callbacks and push configs. The record lists them until
-- they are done, so the sweep finishes them if the gateway dies.

function has_pending() return record.cascade ~= nil or (record.notify_seq or 0) > (record.notified_seq or 0) end

-- The events to deliver, and to whom: 1 its callback (questions and the end), 2 its push configs (everything), 3 both.
function pending_events()
  if not record.unpublished and (record.notify_seq or 0) > (record.notified_seq or 0) then
    return { seq = record.notify_seq, to = record.callbacks }
  end
end

-- Claims the deliveries for the caller, for a limited time.
function claim_pending()
  record.follow_at = now + LIMITS.follow_ms
  redis.call('HSET', key, 'follow_at', record.follow_at)
  schedule()
  return answer({ kind = 'pending', cascade = record.cascade, claimed_until = record.follow_at,
    pending_events = pending_events() })
end

-- Adds the move's event to the pending deliveries.
function add_pending()
  if not record.callbacks or not rule.event then return end
  calls_back = record.callbacks ~= 2 and (ends or rule.status == 'interrupted')
  if calls_back or record.callbacks ~= 1 then
    put('notify_seq', record.version + 1)
    put('follow_at', now + LIMITS.follow_ms)
  end
end

function cascade_to_children()
  if not cmd.cascade or not record.children then return end
  put('cascade', cmd.cascade)
  put('follow_at', now + LIMITS.follow_ms)
end

-- Removes the deliveries that the caller has made, or extends its claim.
function record_delivered()
  if cmd.cascaded then put('cascade', '') end
  if cmd.claim then put('follow_at', now + LIMITS.follow_ms) end
  if cmd.notified then put('notified_seq', math.max(cmd.notified, record.notified_seq or 0)) end
end
