-- Leases: granted, extended, dropped.

function change_lease()
  if rule.lease == 'grant' then
    grant_lease()
  elseif rule.lease == 'extend' then
    extend_lease()
  elseif rule.lease == 'grace' then
    add_grace()
  elseif rule.lease == 'reclaim' then
    reclaim_lease()
  elseif rule.lease == 'drop' and record.lease_expires_at then
    drop_lease()
  end
end

function grant_lease()
  local lease_ms = cmd.lease_ms or settings('lease_ms').lease_ms
  record.fence = record.fence + 1
  record.lapsed = nil
  record.sticky_ms = nil
  record.others_at = nil
  record.kept_for = nil
  local agent = settings('serial', 'sticky_ms')
  if agent.serial and not record.line then join_line() end
  record.last_ms = agent.sticky_ms or nil
  record.nonce = cmd.nonce
  record.worker_id = cmd.worker_id
  record.lease_ms = lease_ms
  record.lease_granted_at = now
  record.lease_expires_at = now + lease_ms
  record.confirm_by = cmd.confirm_ms and now + cmd.confirm_ms or nil
  record.confirm_ms = cmd.confirm_ms
  record.graces = nil
  record.closed_by = nil
  record.reply_hash = nil
  show('attempt', digits(record.attempt))
  show('worker_id', cjson.encode(cmd.worker_id))
  show('expires_at', quoted(iso(record.lease_expires_at)))
end

-- `ends` has a letter for each lease that ended, which says why.
function drop_lease()
  record.ends = record.ends .. rule.lease_lost_reason
  if rule.reclaimable then record.lapsed = record.fence end
  record.lease_expires_at = nil
  record.confirm_by = nil
  record.nonce = nil
  if cmd.reply_hash then
    record.closed_by = cmd.fence
    record.reply_hash = cmd.reply_hash
  end
end

-- A call of the holder: the lease gets its full period again.
function extend_lease()
  record.lease_expires_at = now + record.lease_ms
  record.confirm_by = nil
  record.graces = nil
end

-- Extends the lease after a refusal with `extends_lease`.
function keep_lease()
  extend_lease()
  save()
  schedule()
end
