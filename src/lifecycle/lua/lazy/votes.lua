-- The votes of the open question: approvals by one person after another, where the agent's `votes` need several. All are for
-- the same answer, the ballot; an approval of another answer voids them. A record with one vote of two:
--   record.votes_needed = 2   record.ballot_hash = 'h1'
--   record.votes = '[{"by":"approver:ana","via":"rest","at":"2026-09-21T…Z"}]'

-- caller:ana and approver:ana are one person.
function person_of(principal) return string.match(principal, ':(.+)$') or principal end

-- The votes so far. All of them count under the setting of the newest vote (`votes_seen`). If the agent's setting is another
-- now, only those count that the gateway names (`counted`).
local function counted_votes()
  if record.interrupt_id ~= cmd.interrupt_id or not record.votes then return {} end
  local votes = cjson.decode(record.votes)
  if record.votes_seen == cmd.votes_seen then return votes end
  local counted = {}
  for _, vote in ipairs(votes) do
    for _, by in ipairs(cmd.counted or {}) do
      if vote.by == by then counted[#counted + 1] = vote end
    end
  end
  return counted
end

-- The votes so far for the answer of the command.
function votes_for_this() return record.ballot_hash == cmd.ballot and counted_votes() or {} end

function has_voted(votes)
  for _, vote in ipairs(votes) do
    if person_of(vote.by) == person_of(cmd.voter) then return true end
  end
  return false
end

-- Whether more votes are needed than there are with this one.
function lacks_votes()
  local votes = votes_for_this()
  return #votes + (has_voted(votes) and 0 or 1) < cmd.needed
end

function votes_with_this()
  local votes = votes_for_this()
  if not has_voted(votes) then votes[#votes + 1] = { by = cmd.voter, via = cmd.via, at = iso(now) } end
  return votes
end

-- Refuses an approval if the agent's `votes` have changed since the gateway read them, or if it would void votes and must not
-- (`keeps_ballot`). A repeated vote is a `duplicate`.
function guard_votes()
  if (settings('votes', 'ageing_ms').votes or 0) ~= cmd.votes_seen then return { kind = 'votes_changed' } end
  -- The gateway has not seen all votes, and so cannot say which of them count under the present setting.
  local is_open = record.votes and record.interrupt_id == cmd.interrupt_id
  if cmd.needed and is_open and record.votes_seen ~= cmd.votes_seen and #cjson.decode(record.votes) ~= (cmd.counted_of or 0) then
    return { kind = 'votes_changed' }
  end
  if cmd.keeps_ballot and record.ballot_hash and record.ballot_hash ~= cmd.keeps_ballot then
    return { kind = 'other_votes' }
  end
  if move == 'vote' and has_voted(votes_for_this()) then return { kind = 'duplicate' } end
end

function store_vote()
  local votes = votes_with_this()
  -- Of those that counted, for they were for another answer. Those that do not count any more are left out.
  if record.ballot_hash ~= cmd.ballot then
    local voided = {}
    for _, vote in ipairs(counted_votes()) do
      if person_of(vote.by) ~= person_of(cmd.voter) then voided[#voided + 1] = vote.by end
    end
    if #voided > 0 then show('voided', cjson.encode(voided)) end
  end
  record.votes, record.votes_needed = cjson.encode(votes), cmd.needed
  if record.ballot_hash ~= cmd.ballot then store('ballot', cmd.ballot_answers) end
  record.ballot_hash, record.votes_seen = cmd.ballot, cmd.votes_seen
  show('needed', digits(cmd.needed))
  show('votes', record.votes)
  if cmd.answer_hash then
    local field = 'voted:' .. cmd.interrupt_id
    redis.call('HSET', key, field, (redis.call('HGET', key, field) or '') .. voted_line())
  end
  if cmd.rules then count_rules() end
end

-- Identifies a vote, so that its repeat is recognized once the question is closed.
function voted_line() return cmd.voter .. ' ' .. cmd.answer_hash .. '\n' end

-- Whether this answer to a closed question repeats a vote on it.
function was_vote()
  local lines = cmd.answer_hash and redis.call('HGET', key, 'voted:' .. cmd.interrupt_id)
  return lines and string.find('\n' .. lines, '\n' .. voted_line(), 1, true)
end

function drop_votes()
  if record.ballot_hash then store('ballot', '') end
  record.votes_needed, record.votes, record.votes_seen, record.ballot_hash = nil, nil, nil, nil
end
