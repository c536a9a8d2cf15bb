-- Sticky answers: after an answer, for a while only the worker that asked gets the new ticket. A hash leads from the
-- worker's id to the tickets that are kept for it. Limit: the hash is a hint; `others_at` of the record decides.

function sticky_key() return base .. ':sticky:' .. (record.target or cmd.target) end

-- Keeps the new ticket. Beyond its limits, the ticket is for any worker.
function keep_ticket()
  local sticky = sticky_key()
  local kept = redis.call('HGET', sticky, record.worker_id) or ''
  if #kept > LIMITS.sticky_bytes or (kept == '' and redis.call('HLEN', sticky) >= LIMITS.sticky_workers) then return end
  redis.call('HSET', sticky, record.worker_id, kept .. cmd.id .. ' ' .. digits(record.ticket) .. '\n')
  if redis.call('PTTL', sticky) < record.sticky_ms then redis.call('PEXPIRE', sticky, record.sticky_ms) end
  record.others_at = now + record.sticky_ms
  show('kept_for', cjson.encode(record.worker_id))
  show('kept_until', quoted(iso(record.others_at)))
end

-- Takes the first of the tickets that are kept for this worker and still in the queue; nil when there is none.
function take_kept(kept)
  local id, ticket, rest = string.match(kept, '^(%S+) (%d+)\n(.*)$')
  if rest == '' then
    redis.call('HDEL', sticky_key(), cmd.worker_id)
  else
    redis.call('HSET', sticky_key(), cmd.worker_id, rest)
  end
  if ticket_remove(queue(), id, ticket) then return id, tonumber(ticket) end
  if rest ~= '' then return take_kept(rest) end
end
