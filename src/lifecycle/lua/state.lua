-- The move under way: what the parts share. A poll's take runs after the move that made its ticket and overwrites
-- all of this, so main.lua keeps what it needs of the first move.

-- The command and what comes with it; see main.lua.
local cmd, argv
-- The prefix of the shard's keys, and the record's key.
local base, key
-- Milliseconds: Redis' clock and the command's offset.
local now
-- The record's fields by name. `put` keeps them in step with what is about to be written.
local record
-- The key of a submit holds something already.
local taken_key
-- The move that is made, its row of the table, and the code of the error that it fails with.
local move, rule, failure
-- The limit of events that the delegation has reached.
local full
-- The move costs an attempt; the field of the progress that is dropped.
local spends, dropped
-- What the record gets of the command: messages, chunks, and the bytes of the bodies among the fields.
local history, chunks, bodies
-- The artifacts that the chunks change, by id, and how many bytes they grow by.
local artifacts, growth
-- Bytes that the move adds to what its delegator keeps.
local keeps
-- State and ticket before the move; whether it ends the delegation.
local from, old_ticket, ends
-- What is written: field, value, …; and the event's status and JSON members.
local set, status, members
-- The references to the artifacts' chunks that the event shows, and the bytes of their bodies.
local refs, ref_bytes
-- The event's text, its id, and whether it is for the callback.
local event, event_id, calls_back
-- The timers, as timers.lua finds them.
local soonest, due, due_code
-- Settings of agents that were read, by agent; one script may make two moves.
local known_settings = {}
