-- Lines: with `serial_by`, an agent works on one delegation of a conversation at a time. A line has the unfinished
-- delegations of one conversation, in order of acceptance. The first stays first until it ends; the others are `submitted`
-- without a ticket, and `behind` of their record names the one before them.
--   {errand:0}:line:scout:5f3a… → dlg_0_a 1790000000000, dlg_0_b 1790000000512
-- A delegation with a delay joins the line when a worker would get it; so does one that was accepted before the agent had
-- the setting.

-- A conversation is one delegator's: nobody else who uses its context_id can hold it up.
function conversation() return redis.sha1hex(record.delegator .. ' ' .. record.context_id) end

function line_key() return base .. ':line:' .. record.target .. ':' .. conversation() end

-- Adds the delegation as the last one; returns the one before it. The number grows with time, so that a line that was
-- lost is put together again in order.
function join_line()
  local line = line_key()
  local last = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')
  record.line = math.max(now, (tonumber(last[2]) or 0) + 1)
  redis.call('ZADD', line, digits(record.line), cmd.id)
  return last[1]
end

-- A new delegation joins the line, and waits if it is not the first.
function line_up()
  record.behind = join_line()
  if record.behind then show('behind', quoted(record.behind)) end
end

-- Refuses a lease to those that are not first, and the move `admit` to those that must wait or were admitted before.
function guard_first()
  if record.behind then
    if move == 'admit' and (cmd.follows or has_turn()) then return nil end
    return { kind = 'behind' }
  end
  if move == 'admit' then return { kind = 'behind' } end
  if move == 'lease' and redis.call('EXISTS', line_key()) == 1 then return { kind = 'behind', joins = true } end
end

-- A worker would get it, but others of its conversation are before it: it joins them, and its ticket is gone.
function wait_in_line()
  record.behind = join_line()
  record.check_at = now + LIMITS.check_ms
  record.aged, record.age_at = nil, nil
  save()
  schedule()
end

function is_live(one) return one.state and not is_terminal(one.state) end

-- Whether it may be admitted: nothing that is live is before it in the line, which is repaired here. Without the setting,
-- nobody waits.
function has_turn()
  if not settings('serial').serial then return true end
  local line = line_key()
  local before = read_record(base .. ':d:' .. record.behind)
  if is_live(before) and (before.line or 0) > 0 then
    redis.call('ZADD', line, 'NX', digits(before.line), record.behind)
  end
  redis.call('ZADD', line, 'NX', digits(record.line), cmd.id)
  for _ = 1, 100 do
    local first = redis.call('ZRANGE', line, 0, 0)[1]
    if first == cmd.id then return true end
    if is_live(read_record(base .. ':d:' .. first)) then return false end
    redis.call('ZREM', line, first)
  end
  return false
end

-- It gets its ticket. Without the setting it also leaves the line, which may be in any order from then on.
function take_turn()
  record.behind = nil
  if not settings('serial', 'sticky_ms', 'weight:' .. record.delegator).serial then
    redis.call('ZREM', line_key(), cmd.id)
    record.line = nil
  end
end

-- For the sweep: whether it still waits in line. Restores its place if the line lost it.
function is_behind()
  if has_turn() then return false end
  local line = line_key()
  local at = redis.call('ZRANK', line, cmd.id)
  if at > 0 then record.behind = redis.call('ZRANGE', line, at - 1, at - 1)[1] end
  return true
end

-- After its end: it leaves the line, and the next one is admitted. An error leaves that to the sweep.
function leave_line()
  local reply = success_outcome()
  local ok, admitted = pcall(admit_next)
  if ok and admitted then reply[1] = string.sub(reply[1], 1, -2) .. ',"admitted":' .. admitted .. '}' end
  return reply
end

-- Returns the JSON of the outcome of the admitted one, or nil.
function admit_next()
  local line = line_key()
  local at = redis.call('ZRANK', line, cmd.id)
  if not at then return nil end
  redis.call('ZREM', line, cmd.id)
  if at > 0 then return move_up(unpack(redis.call('ZRANGE', line, at - 1, at))) end
  for _ = 1, 10 do
    local id = redis.call('ZRANGE', line, 0, 0)[1]
    if not id then return nil end
    local next_key = base .. ':d:' .. id
    local next_record = read_record(next_key)
    if is_live(next_record) then
      if not next_record.behind then return nil end
      if next_record.state == 'submitted' then return admit(id, next_key, next_record) end
      -- The broker asks for a larger budget for it; the answer queues it.
      return move_up(nil, id)
    end
    redis.call('ZREM', line, id)
  end
end

-- The one that was between them has left; without `before`, the one that was before it.
function move_up(before, id)
  if not id then return end
  local name = base .. ':d:' .. id
  local one = read_record(name)
  if not one.behind then return end
  one.behind = before
  redis.call('HSET', name, 'packed', cmsgpack.pack(one))
end

-- Makes the move `admit` of another delegation. It overwrites the variables of the current move.
function admit(id, its_key, its_record)
  local command = cjson.encode({ move = 'admit', id = id, base = base, clock = cmd.clock, follows = true,
    retention_ms = cmd.retention_ms, fields = 0, in_event = 0 })
  local reply = transition(its_key, { command, '', '' }, nil, { id = id, record = its_record, known = {} })
  if string.sub(reply[1], 1, 12) ~= '{"kind":"ok"' then return nil end
  return '{"id":"' .. id .. '",' .. string.sub(reply[1], 2)
end
