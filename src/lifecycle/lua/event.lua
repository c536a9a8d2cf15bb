-- Events: one text each (fields.ts), under one id, in the shard's stream and the delegation's own list. The feeds of its
-- two principals refer to it, and that of its root's delegator. Event 1 of dlg_0_x, with the id 1790000000000-0:
--   {errand:0}:events             e = the text: its lines DELEGATION_SENT, dlg_0_x, 1, 1790000000000, submitted, …
--   {errand:0}:d:dlg_0_x:events   1790000000000-0, the text
--   {errand:0}:feed:caller:ana    r = 'dlg_0_x 1'
--   {errand:0}:feed:agent:scout   r = 'dlg_0_x 1'

-- Appends an event to the shard's stream, which gives it its id. A field more tells the gateways what to do for its ticket:
--   1785405-0 → e "DELEGATION_SENT\ndlg_0_x…" m ""           wake no poll, because a parked poll takes it in the same call
--   1785405-1 → e "DELEGATION_STATUS\ndlg_0_x…" k "laptop-7"  it is kept for this worker
function publish(text, hint, value)
  if not hint then return redis.call('XADD', base .. ':events', 'MAXLEN', '~', LIMITS.live_events, '*', 'e', text) end
  return redis.call('XADD', base .. ':events', 'MAXLEN', '~', LIMITS.live_events, '*', 'e', text, hint, value)
end

-- Adds a published event to the feeds and the delegation's list. `at` is the time of its move; nil when it is late.
function copy(text, id, seq, at)
  -- A submit sets the expiry `feed_extra_ms` later than it needs, so events within that time need not renew it.
  local renew = cmd.move == 'submit' or not at or at - record.created_at >= LIMITS.feed_extra_ms
  -- A feed's entry has the event's id. Its text is the delegation's id and the event's number.
  local ref = cmd.id .. ' ' .. seq
  copy_to_feed(record.delegator, ref, id, renew)
  for _, principal in ipairs(other_readers()) do copy_to_feed(principal, ref, id, renew) end
  -- The list comes last: a feed refuses an id that is not greater than its newest, so the list gets no event twice, and
  -- its ids grow. It is smaller than a stream, for which Redis allocates 4 kB at once.
  redis.call('RPUSH', key .. ':events', id, text)
end

-- The principals besides its delegator whose feeds have its events.
function other_readers()
  local target, root = 'agent:' .. record.target, record.root_delegator
  local others = { record.delegator ~= target and target or nil }
  if root and root ~= target then others[#others + 1] = root end
  return others
end

function copy_to_feed(principal, ref, id, renew)
  local feed = base .. ':feed:' .. principal
  if not renew and redis.call('XADD', feed, 'NOMKSTREAM', id, 'r', ref) then return end
  redis.call('XADD', feed, 'MINID', '~', digits(math.max(0, time_ms - cmd.retention_ms)), id, 'r', ref)
  redis.call('PEXPIRE', feed, digits(cmd.retention_ms + LIMITS.feed_extra_ms))
end

-- Writes the event's text, and counts it against the delegation's limits.
function compose_event()
  record.version = record.version + 1
  -- The members of the record, then those of the command: {"progress":…},"reason":"…"} without the braces. All are joined at
  -- once: Lua takes about 12 instructions for each byte of a new text, and they may be long.
  -- First, so that a reader of the tree finds it without parsing the rest (events/entry.ts).
  local root = record.root_id and '"root_id":' .. quoted(record.root_id) or ''
  local head, comma = event_text(root), (root ~= '' or #members > 0) and ',' or ''
  local parts = { head, root ~= '' and #members > 0 and ',' or '', table.concat(members, ',') }
  for i = 4, 2 + 2 * cmd.in_event, 2 do
    parts[#parts + 1] = comma .. '"' .. argv[i] .. '":'
    parts[#parts + 1] = argv[i + 1]
    comma = ','
  end
  event = table.concat(parts)
  -- Bodies are counted in `bytes`. Grants do not count: the moves that end their leases do, which bounds both.
  local counted = #event - #head - #argv[3] - (cmd.bytes or 0)
  if refs and cmd.shows then
    event = event .. '\n' .. digits(ref_bytes) .. ' ["' .. cmd.shows .. '",' .. table.concat(refs, ',') .. ']'
  end
  if rule.event == 'DELEGATION_STATUS' and rule.lease ~= 'grant' and counted > 0 then
    record.event_bytes = (record.event_bytes or 0) + counted
  end
end

-- Publishes the event before the record is written, because the record stores the id of its newest event.
function publish_event(matched)
  local hint, value = matched and 'm', ''
  if kept_worker() then hint, value = 'k', kept_worker() end
  local ok, id = pcall(publish, event, hint, value)
  if ok then
    event_id = id
    record.event_id = id
    if calls_back then store('notify:' .. digits(record.version), id) end
  end
end

-- Copies the event after the record is written: an error leaves a move whose event is pending, never an event without
-- its move.
function copy_event()
  if not (event_id and pcall(copy, event, event_id, record.version, now)) then
    event_id = nil
    redis.call('RPUSH', key .. ':unpublished', (calls_back and '1' or '0') .. event)
    record.unpublished = 1
    save()
    redis.call('ZADD', base .. ':due', digits(now + LIMITS.follow_ms), cmd.id)
  end
end
