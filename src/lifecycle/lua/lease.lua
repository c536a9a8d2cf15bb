-- Leases: granted, extended, dropped.

function change_lease()
  if rule.lease == 'grant' then
    grant_lease()
  elseif rule.lease == 'extend' then
    put('lease_expires_at', now + record.lease_ms)
    if record.confirm_by then put('confirm_by', '') end
  elseif rule.lease == 'drop' and from == 'working' then
    drop_lease()
  end
end

function grant_lease()
  local lease_ms = cmd.lease_ms or settings('lease_ms').lease_ms
  put('fence', record.fence + 1)
  put('nonce', cmd.nonce)
  put('worker_id', cmd.worker_id)
  put('lease_ms', lease_ms)
  put('lease_granted_at', now)
  put('lease_expires_at', now + lease_ms)
  put('confirm_by', cmd.confirm_ms and now + cmd.confirm_ms or '')
  put('closed_by', '')
  put('reply_hash', '')
  show('attempt', digits(record.attempt))
  show('worker_id', cjson.encode(cmd.worker_id))
  show('expires_at', quoted(iso(record.lease_expires_at)))
end

-- `ends` has a letter for each lease that ended, which says why.
function drop_lease()
  put('ends', record.ends .. rule.lease_lost_reason)
  put('lease_expires_at', '')
  put('confirm_by', '')
  put('nonce', '')
  if cmd.reply_hash then
    put('closed_by', cmd.fence)
    put('reply_hash', cmd.reply_hash)
  end
end

-- Extends the lease after a refusal with `extends_lease`.
function keep_lease()
  record.lease_expires_at, record.confirm_by = now + record.lease_ms, nil
  redis.call('HSET', key, 'lease_expires_at', record.lease_expires_at, 'confirm_by', '')
  schedule()
end
