-- Reclaim: the holder of a lapsed lease has it again, with the same fence, because nothing was leased since.

function reclaim_lease()
  -- The lease goes on, so the reason why it ended is no longer true.
  record.ends = string.sub(record.ends, 1, record.fence - 1)
  record.lapsed = nil
  record.behind = nil
  extend_lease()
  show('attempt', digits(record.attempt))
  show('worker_id', cjson.encode(record.worker_id))
  show('expires_at', quoted(iso(record.lease_expires_at)))
end
