-- Deleting a finished delegation: after its retention time the record, and with `erase` its events as well.

function remove()
  local idempotency = record.idempotency
  if idempotency and not cmd.key_retired then return refusal_outcome({ kind = 'retire_key', idempotency = idempotency }) end
  if move == 'erase' then
    erase_events()
    -- The failed delegation that it redrove must not be redriven again.
    local failed = base .. ':d:' .. (record.redrive_of or '')
    if read_record(failed).state then redis.call('HSET', failed, 'redrive_erased', 1) end
  end
  for _, name in ipairs(lists()) do redis.call('ZREM', name, cmd.id) end
  if record.interrupt_raised_at then unlist_settled() end
  add_kept(record.delegator, -record.kept)
  redis.call('ZREM', base .. ':due', cmd.id)
  redis.call('DEL', key, key .. ':events', key .. ':history', key .. ':artifacts', key .. ':unseen', key .. ':children',
    key .. ':awaits', key .. ':spent', key .. ':secrets', key .. ':pushes', key .. ':pushed', key .. ':unpublished')
  if idempotency then
    -- A retry that read the key before it was retired may still submit under this id.
    redis.call('HSET', key, 'deleted', 1)
    redis.call('PEXPIRE', key, LIMITS.deleted_ms)
    if now < record.created_at + LIMITS.idempotency_ms then add_key_kept(record.delegator) end
  end
  return refusal_outcome({ kind = 'removed' })
end

-- Deletes its events from the streams that outlive it, and counts them, so that readers do not take them for trimmed.
function erase_events()
  local streams = { base .. ':events', base .. ':feed:' .. record.delegator }
  for _, principal in ipairs(other_readers()) do streams[#streams + 1] = base .. ':feed:' .. principal end
  for _, stream in ipairs(streams) do store_oldest(stream) end
  local count, ids = 0, {}
  repeat
    ids = next_event_ids(count)
    for _, stream in ipairs(#ids > 0 and streams or {}) do
      local deleted = redis.call('XDEL', stream, unpack(ids))
      if deleted > 0 then redis.call('HINCRBY', base .. ':erased', stream, deleted) end
    end
    count = count + #ids
  until #ids < 100
end

-- Called before events are erased: stores the stream's oldest event. Until more events are trimmed, a reader whose
-- position is this event or later has missed none. See events/missed.lua.
function store_oldest(stream)
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if not oldest then return end
  local flat, info = redis.call('XINFO', 'STREAM', stream), {}
  for i = 1, #flat, 2 do info[flat[i]] = flat[i + 1] end
  if not info['entries-added'] then return end
  local erased = base .. ':erased'
  local trimmed = info['entries-added'] - info['length'] - tonumber(redis.call('HGET', erased, stream) or 0)
  local known = redis.call('HGET', erased, stream .. ':whole') or ''
  if string.match(known, '^%S+ (%S+)$') == digits(trimmed) then return end
  redis.call('HSET', erased, stream .. ':whole', oldest[1] .. ' ' .. digits(trimmed))
end

-- Counts an idempotency key that outlives its delegation. See share.lua.
function add_key_kept(delegator)
  local name, newer, older = base .. ':kept:keys', read_keys_kept(delegator)
  redis.call('HSET', name, delegator, table.concat({ digits(math.floor(now / LIMITS.idempotency_ms)),
    digits(newer + LIMITS.key_bytes), digits(older) }, ' '))
  redis.call('PEXPIRE', name, 2 * LIMITS.idempotency_ms)
end
