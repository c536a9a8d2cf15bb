-- The only writer of records. `transition` makes one move: it changes the record and publishes the event, or it refuses.
-- run.lua calls it for each command of a call.
--
-- ../script.ts joins the parts into one script; the order of functions does not matter, and LIMITS.* becomes a number.
-- Redis runs the whole text at every call, so each call defines every function again. To keep that cheap, the parts in
-- lazy/ are defined when one of their functions is first called, and tables are functions that build only what a call
-- needs.
--
-- first_key  the record's key; with `take`, the agent's. Every other key begins with cmd.base
-- args[1]    the command `cmd`, JSON: move, id, base (the prefix of the shard's keys), clock (ms added to Redis' time),
--            read (whether to return the record), and the move's parameters. With `take`, it leases the first ticket in
--            the target's queue, and has no `id` and `ticket`
-- args[2]    members for the event: JSON without braces, '' for none
-- args[3]    messages for the history: JSON, comma separated, '' for none
-- args[4…]   cmd.fields pairs of own field and value to store in the record; the first cmd.in_event of them are also
--            members of the event. Then an artifact's JSON for each of cmd.chunks ({id, append}); cmd.shows is the name of the
--            event's member that has the artifacts
-- taker      [agent's key, command JSON] of a `take` for a parked poll; runs if the move makes a ticket that is ready
-- moved      only with a taker's command: {id, record, is_first, known} of the delegation that was just moved,
--            which saves a read. `is_first`: its ticket was not added to the queue, because it would be the first
-- Returns    an array, see outcome.lua; with a taker, its last element is what the taker's command returned
--
-- A submit for which a poll is parked, and what becomes of it:
--   first_key  {errand:0}:d:dlg_0_x
--   args       {"move":"submit","id":"dlg_0_x","base":"{errand:0}","target":"scout","clock":0,"read":true,
--              "in_event":1,"fields":2,…}, '', '', task_preview, "count", message, {"messageId":"m","parts":[…]}
--   taker      {errand:0}:agent:scout, {"move":"lease","take":true,"target":"scout","nonce":"n1","worker_id":"w",…}
--   Redis      record dlg_0_x in state `working`, with version 2, ticket 1 and fence 1; two events
--   Returns    {"kind":"ok","move":"submit",…}, the record, {}, [{"kind":"ok","move":"lease","fence":1,…}, …]
function transition(first_key, args, taker, moved)
  start(first_key, args)
  local reply = find_record(moved) or ((move == 'due' or move == 'erase') and choose_due_move())
  if reply then return reply end
  apply_table()
  reply = refuse()
  if reply then return reply end

  change()
  -- The taker gets the new ticket if no other ticket is before it. Its event says so.
  local waits = rule.queue == 'ticket' and record.behind
  local is_first = taker and rule.queue == 'ticket' and not waits and is_ready_first()
  write(is_first or waits)
  if finishes and (record.line or 0) > 0 then return leave_line() end
  if rule.queue ~= 'ticket' or waits then return success_outcome() end
  if not taker or ticket_at() > now then return success_outcome(offer_ticket()) end
  if not is_first and not offer_ticket() then return success_outcome(false) end
  return take_for_poll(taker, success_json(''), is_first)
end

function refuse()
  local refusal = guard_submit() or guard_holder() or (rule.needs_open_question and guard_question()) or guard_state() or
    (rule.needs_lazy_guards and (guard_repeat() or guard_slots())) or (cmd.usage and guard_usage()) or
    (chunks and guard_artifacts()) or guard_events() or guard_size() or guard_share()
  if not refusal then return nil end
  if refusal.extends_lease then
    keep_lease()
    refusal.extends_lease, refusal.lease_expires_at = nil, record.lease_expires_at
  end
  if refusal.joins then
    refusal.joins = nil
    wait_in_line()
  end
  -- A `take` removed the ticket from the queue before it was ready, so it is put back.
  if refusal.kind == 'not_ready' and cmd.take then offer_ticket() end
  return refusal_outcome(refusal)
end

-- Collects the changes of the record and the members of the event.
function change()
  from, old_ticket, status = record.state, record.ticket, rule.status or ''
  set, members = {}, { argv[2] ~= '' and argv[2] or nil }
  if move == 'submit' then create() end
  local to = rule.to == 'asked' and cmd.to or rule.to or from
  finishes = from ~= to and is_terminal(to)
  if from ~= to then record.state = to end
  if rule.event then record.updated_at = now end
  local added = #history + bodies + growth
  if added ~= 0 then record.bytes = record.bytes + added end
  if chunks then store_artifacts() end
  if rule.drops_artifacts and record.artifact_bytes then drop_artifacts() end
  if rule.needs_pace then count_pace() end
  change_own()
  if cmd.push then store_push() end
  if cmd.a2a_form and not record.a2a_form then store_a2a_form() end
  if cmd.seen and record.unseen then drop_seen() end
  if cmd.usage then store_usage() end
  if spends then record.attempt = record.attempt + 1 end
  if rule.refunds and not event_limit then record.attempt = record.attempt - 1 end
  if record.awaits_left and (from == 'awaiting_children' or finishes) and from ~= record.state then end_wait() end
  change_lease()
  if rule.to == 'asked' or record.interrupt_id and from ~= record.state then change_question() end
  if rule.queue == 'ticket' then number_ticket() end
  if rule.queue == 'raise_ticket' then raise_ticket() end
  if record.budget and (counts_spending() or move == 'overrun' or from ~= record.state or rule.lease == 'drop') then change_budget() end
  if finishes then finish() end
  if record.callbacks and rule.event then add_pending() end
end

-- Changes that only one move makes.
function change_own()
  if move == 'adopt' then
    redis.call('SADD', key .. ':children', cmd.child_id)
    record.children = 1
  elseif move == 'redrive' then
    record.redriven_as = cmd.new_id
  elseif move == 'follow_up' then
    record_delivered()
  elseif move == 'message' then
    store_message()
  elseif rule.to == 'asked' then
    store_question()
    record.sticky_ms = cmd.sticky_ms
  elseif move == 'park_question' then
    -- A holder whose lease expired is gone.
    if cmd.move ~= 'release' then record.sticky_ms = cmd.sticky_ms end
  elseif move == 'ask_people' then
    ask_people()
  elseif move == 'use' then
    use_answer()
  elseif move == 'vote' then
    store_vote()
  elseif move == 'answer' or move == 'hand_over' or move == 'deny_budget' then
    store_answers()
  elseif move == 'await' then
    await_children()
  elseif move == 'child_ended' or move == 'resume' then
    note_end()
  elseif move == 'expect' then
    record.expected = 1
  elseif move == 'cancel' or move == 'cascade' then
    cascade_to_children(cmd.cascade, cmd.always, cmd.all)
  end
end

-- Writes the record, with its indexes, and the event. `matched`: there is no new ticket, or a parked poll takes it in
-- this call.
function write(matched)
  if not rule.event_only then
    for i = 4, 2 + 2 * cmd.fields, 2 do
      if argv[i] ~= dropped then
        store(argv[i], argv[i + 1])
        known[argv[i]] = true
      end
    end
  end
  if rule.event then compose_event() end
  if history ~= '' then
    redis.call('RPUSH', key .. ':history', history)
    if not record.spoken then record.spoken = 1 end
  end
  if keeps ~= 0 then count_kept() end
  if event and not record.unpublished then publish_event(matched) end
  save(unpack(set))
  index()
  if event then copy_event() end
end

-- Runs the `take` of a parked poll after the move that made a ticket. It takes the first ticket of the queue: the new
-- one, or an older one. `is_first`: the new one is the first; it is added to the queue only if the poll does not get
-- it. An error in the `take` leaves the move as it is.
function take_for_poll(taker, json, is_first)
  -- The `take` overwrites these variables.
  local id, read, moved_key, moved_record, moved_cmd = cmd.id, cmd.read, key, record, cmd
  local moved = { id = id, record = record, is_first = is_first, known = known }
  local ok, taken = pcall(transition, taker[1], { taker[2], '', '' }, nil, moved)
  if not ok then taken, moved_record = nil, read_record(moved_key) end
  -- If the poll took this very delegation, what it returned has the newer record.
  local is_taken = ok and cmd.id == id and #taken[2] > 0
  local ticketed = true
  if not is_taken then
    cmd, key, record, known = moved_cmd, moved_key, moved_record, moved.known
    -- After an error the gateway adds the ticket, as after a move without a `take`, and wakes polls: the event does not.
    if is_first and not (ok and offer_ticket()) then ticketed, taken = false, nil end
  end
  local reply = { json .. json_tail(ticketed), '', {}, taken }
  if read and not is_taken then add_record(reply) end
  return reply
end
