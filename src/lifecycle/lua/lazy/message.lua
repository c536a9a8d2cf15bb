-- Follow-ups: the delegator's messages to work in progress, kept until the holder has seen them.

-- A follow-up is stored after its id, on a line of its own, so that the id is found without decoding user text.
function id_line(id) return cjson.encode(id) .. '\n' end

function store_message()
  redis.call('HSET', key, 'said:' .. cmd.message_id, cmd.message_hash)
  redis.call('RPUSH', key .. ':unseen', id_line(cmd.message_id) .. argv[3])
  record.unseen = (record.unseen or 0) + 1
end

-- The holder has seen every follow-up up to `cmd.seen`.
function drop_seen()
  local line = id_line(cmd.seen)
  for n, text in ipairs(redis.call('LRANGE', key .. ':unseen', 0, -1)) do
    if string.sub(text, 1, #line) == line then
      redis.call('LTRIM', key .. ':unseen', n, -1)
      record.unseen = redis.call('LLEN', key .. ':unseen')
      return
    end
  end
end
