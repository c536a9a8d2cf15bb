-- Questions and their answers. The answer to an `auth` question is a secret: it is stored apart, and erased at the end.

-- Refuses an answer unless its question is open; the same answer again is a `duplicate`. An answer to an `auth` question,
-- or by a link, has only the hash of its request key: no guess of a secret can be told from another, and no link is told that
-- it gave the answer of somebody else.
function guard_question()
  if record.interrupt_id == cmd.interrupt_id and not cmd.only_repeat then return nil end
  local hash = redis.call('HGET', key, 'answer_hash:' .. cmd.interrupt_id)
  local same = hash and (hash == cmd.answer_hash or hash == cmd.answer_key) or hash and was_vote()
  return { kind = same and 'duplicate' or 'no_question' }
end

-- The answers to a question that was answered before; nil when there are none.
function answers_to(question)
  local answers = redis.call('HGET', key, 'answer:' .. question)
  if not answers and record.secret_bytes then
    answers = redis.call('HGET', key .. ':secrets', 'answers:' .. question)
  end
  return answers
end

-- The question that this lease asked last.
function asked_by_lease(fence) return cjson.decode(redis.call('HGET', key, 'asked:' .. digits(fence)) or '{}') end

-- `seq`: the number of its event, which this move writes.
function store_question()
  local asked = { id = cmd.interrupt_id, hash = cmd.reply_hash, seq = record.version + 1 }
  redis.call('HSET', key, 'asked:' .. digits(cmd.fence), cjson.encode(asked))
end

-- Without a hash, no later answer is recognized as this one.
function store_answers()
  if cmd.secret then
    redis.call('HSET', key .. ':secrets', 'answers:' .. cmd.interrupt_id, cmd.answers)
    record.secret_bytes = (record.secret_bytes or 0) + cmd.bytes
  else
    redis.call('HSET', key, 'answer:' .. cmd.interrupt_id, cmd.answers)
  end
  local hash = cmd.answer_hash or cmd.answer_key
  if hash then redis.call('HSET', key, 'answer_hash:' .. cmd.interrupt_id, hash) end
  record.answered = (record.answered or 0) + 1
  if cmd.ballot then show('votes', cjson.encode(votes_with_this())) end
  if cmd.rules then count_rules() end
end

-- An answer is used by one call: that of this lease with this key.
function used_field() return 'used:' .. cmd.interrupt_id .. ':' .. cmd.request_id end
function use_of() return digits(cmd.fence) .. ' ' .. cmd.use_key end
function use_answer() redis.call('HSET', key, used_field(), use_of()) end

-- Shows the question in the event. `is_held`: a worker waits for the answer with its lease.
function show_question(interrupt, is_held)
  if is_held then show('expires_at', quoted(iso(record.lease_expires_at))) end
  show('interrupt', '{"raised_at":' .. quoted(iso(record.interrupt_raised_at)) .. ',"expires_at":' ..
    quoted(iso(record.interrupt_expires_at)) .. ',' .. string.sub(interrupt, 2))
end

-- The event of the open question says that the broker answers it at once, so this one asks people.
function ask_people()
  show('again', 'true')
  show_question(redis.call('HGET', key, 'interrupt'), record.lease_expires_at ~= nil)
end

-- Opens the question if the move asks one; closes the open one if the move ends its state.
function change_question()
  if rule.to == 'asked' then
    local ttl = cmd.interrupt_ttl_ms or settings('interrupt_ttl_ms').interrupt_ttl_ms
    record.interrupt_id = cmd.interrupt_id
    record.votes_needed = cmd.votes_needed
    store('interrupt', cmd.interrupt)
    record.interrupt_raised_at = now
    record.interrupt_expires_at = math.min(now + ttl, record.deadline_at)
    show_question(cmd.interrupt, rule.lease == 'extend')
  else
    redis.call('DEL', key .. ':answers:' .. record.interrupt_id)
    if rule.status == 'answered' or move == 'expire' or move == 'deny_budget' then settle_question() end
    drop_votes()
    record.interrupt_id = nil
    store('interrupt', '')
    record.interrupt_expires_at = nil
  end
end

-- Notes that the open question was answered, or expired. The newest lease asked it.
function settle_question()
  local asked = asked_by_lease(record.fence)
  settled = asked.id == record.interrupt_id and asked.seq or 0
  if move == 'expire' then
    show('interrupt_id', quoted(record.interrupt_id))
    keeps = keeps + LIMITS.event_copies * #(cmd.error or '')
    if record.votes_needed then
      show('needed', digits(record.votes_needed))
      show('votes', record.votes or '[]')
    end
  end
  keeps = keeps + LIMITS.settled_bytes
end

-- The lists of settled questions that it is in.
function settled_lists()
  local list = base .. ':list:answers:'
  return { list .. 'all', list .. 'target:' .. record.target, list .. 'delegator:' .. record.delegator }
end

-- Lists the settled question by the numbers of two events: that of this move, and its own.
function list_settled()
  local place = digits(record.version) .. ' ' .. digits(settled)
  for _, name in ipairs(settled_lists()) do redis.call('ZADD', name, digits(now), cmd.id .. ' ' .. place) end
  redis.call('HSET', key, 'settled', (redis.call('HGET', key, 'settled') or '') .. place .. '\n')
end

-- Before the record is deleted.
function unlist_settled()
  for place in string.gmatch(redis.call('HGET', key, 'settled') or '', '[^\n]+') do
    for _, name in ipairs(settled_lists()) do redis.call('ZREM', name, cmd.id .. ' ' .. place) end
  end
end

-- Replaces the stamp, a random text in the stored JSON, with the time of the move, which only the script knows.
function stamp()
  local at = iso(now)
  argv[3] = (string.gsub(argv[3], cmd.stamp, at))
  cmd.answers = (string.gsub(cmd.answers, cmd.stamp, at))
end
