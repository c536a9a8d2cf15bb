-- The variables of the current move, which the parts share. The `take` of a parked poll runs after the move that made
-- its ticket and overwrites them, so `take_for_poll` saves the ones that it still needs.

-- The decoded command, and the arguments that it came with; see main.lua.
local cmd, argv
-- The prefix of the shard's keys, and the record's key.
local base, key
-- Milliseconds: Redis' clock and the command's offset.
local now
-- The record's packed fields by name: numbers and short texts. A change of them is stored by `save`. An absent field is
-- nil. Of a delegation at work: {state = 'working', version = 2, target = 'scout', delegator = 'caller:ana',
-- ticket = 1, fence = 1, attempt = 1, lease_expires_at = 1790000060000, worker_id = 'w', …}. fields.ts lists all.
local record
-- The own fields that the command stored, by name: its gateway has their texts. `known.all`: there are no others, because
-- nothing was stored under the key of this submit.
local known
-- The move, its row of the table, and the code of the error that the delegation fails with.
local move, rule, failure
-- The event limit that the delegation has reached; nil: none.
local event_limit
-- Whether the move costs an attempt; the field that is dropped because the move was replaced.
local spends, dropped
-- The command's messages and chunks, and the bytes of the bodies among its fields.
local history, chunks, bodies
-- The artifacts that the chunks change, by id, and how many bytes they grow by.
local artifacts, growth
-- Bytes that the move adds to its delegator's share.
local keeps
-- State and ticket before the move; whether it finishes the delegation.
local from, old_ticket, finishes
-- The own fields to write: name, text, …; and the event's status and JSON members.
local set, status, members
-- The references to the artifacts' chunks that the event shows, and the bytes of their bodies.
local refs, ref_bytes
-- The event's text, its id, and whether it is for the callback.
local event, event_id, calls_back
-- The number of the event of the question that the move settles, 0 if it is not known; nil: it settles none.
local settled
-- The timers; see timers.lua.
local soonest, due, due_code
-- Settings that were read, by agent. They also serve a second move in the same call.
local known_settings = {}
