-- The one writer: moves a delegation and leaves its event, or refuses. Never both, never half. assemble.ts puts the parts
-- together: the order of functions does not matter, and LIMITS.* is replaced by its number. Redis runs the whole text at
-- every call and defines every function again, so the parts in rare/ are defined when they are first called, and tables
-- are functions that build only what a call needs.
--
-- first    the record's key; every other key is derived under the same tag. With `take`: the agent's key
-- given[1] the command, JSON: move, id, base, clock (ms added to Redis' time), read, and the move's parameters. With
--          `take`, it leases the first ticket in the target's queue, and has no `id` and `ticket`
-- given[2] JSON members for the event, without braces ('' for none)
-- given[3] JSON messages for the record's history, comma separated ('' for none)
-- given[4…] cmd.fields is the number of pairs of field and value to store in the record; the first cmd.shown of them are
--          members of the event, too. Then the JSON of an artifact for each of cmd.chunks ({id, append}); the event
--          shows the artifacts as its member cmd.shows
-- taker    [agent's key, command JSON] of a `take` for a parked poll, when the move may make a ticket that is ready
-- made     only for a taker: {id, record, direct} of the delegation that was just moved, which saves a read; `serve`
--          explains `direct`
-- Returns  see answer.lua; then the taker's answer
function transition(first, given, taker, made)
  start(first, given)
  local reply = find_record(made) or ((move == 'due' or move == 'erase') and choose_due_move())
  if reply then return reply end
  apply_table()
  reply = refuse()
  if reply then return reply end

  change()
  write()
  if rule.queue ~= 'ticket' then return success_answer() end
  if not taker or record.ready_at > now then return success_answer(offer_ticket()) end
  local ok, direct = pcall(ticket_is_first, queue(), time_ms)
  direct = ok and direct
  if not direct and not offer_ticket() then return success_answer(false) end
  return serve(taker, success_json(''), direct)
end

function refuse()
  local refusal = guard_submit() or guard_holder() or (rule.needs_interrupt and guard_question()) or guard_state() or
    (rule.needs_rare and (guard_repeat() or guard_sets())) or (chunks and guard_artifacts()) or guard_events() or
    guard_size() or guard_share()
  if not refusal then return nil end
  if refusal.alive then
    keep_lease()
    refusal.alive, refusal.lease_expires_at = nil, record.lease_expires_at
  end
  -- The ticket was taken before it was ready, so it is returned.
  if refusal.kind == 'not_ready' and cmd.take then offer_ticket() end
  return refusal_answer(refusal)
end

-- Collects the changes of the record and the members of the event.
function change()
  from, old_ticket, status = record.state, record.ticket, rule.status or ''
  set, members = {}, { argv[2] ~= '' and argv[2] or nil }
  if move == 'submit' then create() end
  local to = rule.to == 'asked' and cmd.to or rule.to or from
  ends = from ~= to and is_terminal(to)
  if from ~= to then put('state', to) end
  if rule.event then put('updated_at', now) end
  local added = #history + bodies + growth
  if added ~= 0 then put('bytes', record.bytes + added) end
  if chunks then store_artifacts() end
  if rule.drops_artifacts and record.artifact_bytes then drop_artifacts() end
  if rule.needs_pace then count_pace() end
  change_own()
  if cmd.push then store_push() end
  if cmd.seen and record.unseen then drop_seen() end
  change_lease()
  if spends then put('attempt', record.attempt + 1) end
  if rule.to == 'asked' or record.interrupt_id and from ~= record.state then change_question() end
  if rule.queue == 'ticket' then number_ticket() end
  if ends then finish() end
  if record.callbacks and rule.event then add_pending() end
end

-- Changes that are special to one move.
function change_own()
  if move == 'adopt' then
    redis.call('SADD', key .. ':children', cmd.child_id)
    put('children', 1)
  elseif move == 'redrive' then
    put('redriven_as', cmd.new_id)
  elseif move == 'follow_up' then
    record_delivered()
  elseif move == 'message' then
    store_message()
  elseif move == 'interrupt' then
    store_question()
  elseif move == 'answer' then
    store_answers()
  elseif move == 'cancel' or move == 'cascade' then
    cascade_to_children()
  end
end

-- Writes the record, with its indexes, and the event.
function write()
  if not rule.event_only then
    for i = 4, 2 + 2 * cmd.fields, 2 do
      if argv[i] ~= dropped then set[#set + 1], set[#set + 2] = argv[i], argv[i + 1] end
    end
  end
  if rule.event then compose_event() end
  if history ~= '' then
    redis.call('RPUSH', key .. ':history', history)
    if not record.spoken then put('spoken', 1) end
  end
  if record.kept and keeps ~= 0 then count_kept() end
  if event and not record.unpublished then publish_event() end
  for i = 2, #set, 2 do
    if type(set[i]) == 'number' then set[i] = digits(set[i]) end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  index()
  if event then copy_event() end
end

-- A parked poll takes the first ticket of the queue in the same step: this one, or an older one. An error there undoes
-- nothing: the ticket is in the queue. `direct`: this one is the first, so it is added only if the poll does not get it.
function serve(taker, json, direct)
  local id, read, its_key, its_record, its_cmd = cmd.id, cmd.read, key, record, cmd
  local made = { id = id, record = record, direct = direct }
  local ok, taken = pcall(transition, taker[1], { taker[2], '', '' }, nil, made)
  if not ok then taken = nil end
  -- When the poll took this very delegation, its answer has the newer record.
  local is_taken = ok and cmd.id == id and #taken[2] > 0
  local ticketed = true
  if not is_taken then
    cmd, key, record = its_cmd, its_key, its_record
    -- If the queue refuses the ticket, the gateway adds it, as after a move without a taker.
    if direct and not offer_ticket() then ticketed, taken = false, nil end
  end
  local reply = { json .. ending(ticketed), {}, {}, {}, {}, taken }
  if read and not is_taken then read_into(reply) end
  return reply
end
