-- Publishes, in order, the events whose publishing failed. Every move and the sweep try it.
function publish_late()
  local late = key .. ':unpublished'
  for _, one in ipairs(redis.call('LRANGE', late, 0, -1)) do
    local for_callback, text = string.sub(one, 1, 1) == '1', string.sub(one, 2)
    local id, seq = publish(text), string.match(text, '^[^\n]*\n[^\n]*\n(%d+)')
    copy(text, id, seq)
    record.event_id = id
    save()
    if for_callback then redis.call('HSET', key, 'notify:' .. seq, id) end
    redis.call('LPOP', late)
  end
  record.unpublished = nil
  save()
end
