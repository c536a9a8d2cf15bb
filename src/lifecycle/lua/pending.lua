-- Pending deliveries: marking its children as expected, canceling them, reporting its own end and what its tree has used
-- to its parent, and its events to callbacks and push configs. The record lists them until they are done, so the sweep
-- finishes them if the gateway dies.

function has_pending()
  return record.cascade ~= nil or record.expecting ~= nil or record.reports ~= nil or record.spends ~= nil or
    (record.notify_seq or 0) > (record.notified_seq or 0)
end

-- The events to deliver, and to whom: 1 its callback (questions and the end), 2 its push configs (everything), 3 both.
function pending_events()
  if not record.unpublished and (record.notify_seq or 0) > (record.notified_seq or 0) then
    return { seq = record.notify_seq, to = record.callbacks }
  end
end

-- Adds the move's event to the pending deliveries.
function add_pending()
  -- A question that is approved in advance has no callback.
  calls_back = record.callbacks ~= 2 and (finishes or (rule.status == 'interrupted' and not cmd.auto))
  if calls_back or record.callbacks ~= 1 then
    record.notify_seq = record.version + 1
    record.follow_at = now + LIMITS.follow_ms
  end
end
