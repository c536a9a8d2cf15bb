-- Push configs: URLs that a delegation's events are POSTed to. The hash `:pushed` has the delivery state of each; see
-- engine/outbound/push-notifications/delivery-state.ts.

function store_push()
  redis.call('HSET', key .. ':pushes', cmd.push, cmd.push_config)
  local push_bytes = 0
  for _, config in ipairs(redis.call('HVALS', key .. ':pushes')) do push_bytes = push_bytes + #config end
  -- The share guard has counted the config of a submit.
  if move ~= 'submit' then keeps = keeps + push_bytes - (record.push_bytes or 0) end
  record.push_bytes = push_bytes
  record.callbacks = record.callbacks and bit.bor(record.callbacks, 2) or 2
  -- A config that replaces another continues at the other's position. A new one gets the events from now on; if the
  -- delegation has finished, it gets the last event.
  local pushed = key .. ':pushed'
  local job = redis.call('HGET', pushed, 'job:' .. cmd.push)
  if job ~= 'over' and redis.call('HEXISTS', pushed, 'at:' .. cmd.push) == 1 then return end
  local at = nth_newest_event(is_terminal(record.state) and 2 or 1)
  redis.call('HSET', pushed, 'at:' .. cmd.push, at or '0-0')
  redis.call('HDEL', pushed, 'job:' .. cmd.push, 'since:' .. cmd.push, 'part:' .. cmd.push)
  -- Its call is queued without an event.
  if is_terminal(record.state) then record.calls_at = now + LIMITS.check_ms end
end
