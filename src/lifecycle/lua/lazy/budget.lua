-- Budgets: how much a delegation and everything under it, its tree, may use. Each delegation under a budget adds up what its
-- tree has used, and reports that sum to its parent, which may be in another shard. A sum only grows, and a parent keeps the
-- last one of each child. So a report can be repeated, or overtaken by a newer one, and the sums stay exact.
--
--   child   usage 40 ──► 140, spends ──► spend(child, 140) at the parent ──► follow_up, nothing is pending
--   parent  {errand:0}:d:dlg_0_x:spent → dlg_3_c "100 0 1"; adds 40 to its own sum, and reports that to its own parent
--
-- The packed field `budget` is JSON: `limit`, the amounts that it may use, absent if only a delegation above has a budget; `used`,
-- the sum; `of`, the nearest delegation above that has a budget; `on_budget`; and `exceeded`. Besides, not shown: `currency`, that
-- of all costs in the tree, or absent: costs are not counted; `begun`, how many of its own attempts have begun; `from`, when its
-- time began to count.

function read_budget() return cjson.decode(record.budget) end

-- Whether `on_budget` is `ask`. Called at each move with a timer, so it decodes nothing.
function asks_over_budget() return string.find(record.budget, '"on_budget":"ask"', 1, true) ~= nil end

function counts_spending() return cmd.usage or rule.lease == 'grant' or move == 'spend' end

function change_budget()
  local b, changed = read_budget(), true
  if move == 'overrun' then
    b.exceeded = true
    record.over_at = nil
    record.stop_at = math.max(record.stop_at or 0, now + LIMITS.budget_grace_ms)
    show('budget', shown_budget(b))
  elseif move == 'exceed' then
    b.exceeded = true
  elseif move == 'ask_budget' then
    b.exceeded = true
    record.over_at, record.stop_at = nil, nil
    -- A later lease must not take the wait for one that has ended.
    if from == 'awaiting_children' then store('awaits', '') end
  elseif move == 'answer' and asks_for_budget(cmd.interrupt_id) then
    raise_budget(b)
  else
    changed = counts_spending() and count_spending(b)
  end
  if changed then record.budget = '{' .. shown_members(b) .. hidden_members(b) .. '}' end
  if record.stop_at then set_stop() end
end

-- Only a worker that has it gets some time; without one it stops at once.
function set_stop()
  if is_terminal(record.state) then
    record.over_at, record.stop_at = nil, nil
  elseif not record.lease_expires_at then
    record.stop_at = record.over_at or math.min(record.stop_at, now)
  elseif record.over_at then
    record.stop_at = record.over_at + LIMITS.budget_grace_ms
  end
end

-- Adds what the move uses to the sum; false if that is nothing.
function count_spending(b)
  local tokens, cost, attempts = 0, 0, 0
  if cmd.usage then
    local added = cmd.usage.added
    tokens, cost = (added.input_tokens or 0) + (added.output_tokens or 0), added.cost or 0
  end
  if rule.lease == 'grant' then
    attempts = math.max(0, record.attempt - b.begun)
    b.begun = b.begun + attempts
    if not b.from then start_time(b, now) end
  elseif move == 'spend' then
    tokens, cost, attempts = added_by_child()
  end
  if tokens <= 0 and cost <= 0 and attempts <= 0 then return false end
  local used = b.used
  used.tokens, used.attempts = capped(used.tokens + tokens), used.attempts + attempts
  if b.currency then used.cost = tonumber(amount_text('cost', used.cost + cost)) end
  judge_budget(b)
  if b.of then
    -- Frequent reports must not keep the sweep from what is pending already.
    if not has_pending() then record.follow_at = now + LIMITS.follow_ms end
    record.spends = 1
    cmd.spent_now = spent_text(b)
  end
  return true
end

function spent_text(b)
  return digits(b.used.tokens) .. ' ' .. amount_text('cost', b.used.cost or 0) .. ' ' .. digits(b.used.attempts)
end

-- How much more the child has used than when it was counted last.
function added_by_child()
  local function numbers(text)
    local tokens, cost, attempts = string.match(text, '^(%S+) (%S+) (%S+)$')
    return tonumber(tokens), tonumber(cost), tonumber(attempts)
  end
  local spent = key .. ':spent'
  local known = redis.call('HGET', spent, cmd.child_id)
  local tokens, cost, attempts = numbers(cmd.spent)
  local old_tokens, old_cost, old_attempts = numbers(known or '0 0 0')
  -- An older report than the known one.
  if tokens < old_tokens or cost < old_cost or attempts < old_attempts then return 0, 0, 0 end
  redis.call('HSET', spent, cmd.child_id, cmd.spent)
  if not known then keeps = keeps + LIMITS.spent_bytes end
  return tokens - old_tokens, cost - old_cost, attempts - old_attempts
end

-- Sets the timers of a limit on the time.
function start_time(b, from)
  b.from = from
  if not (b.limit and b.limit.seconds) then return end
  record.over_at = from + math.floor(b.limit.seconds * 1000)
  record.stop_at = record.over_at
end

-- Notes that the sum exceeds the limit.
function judge_budget(b)
  if not b.limit or b.exceeded and not is_terminal(record.state) then return end
  local names = exceeded_amounts(b)
  -- Its own time ends with it; what else its parts use after it counts.
  if is_terminal(record.state) and names[#names] == 'seconds' then names[#names] = nil end
  if #names == 0 then return end
  b.exceeded = true
  if is_terminal(record.state) then return stop_tree() end
  record.over_at, record.stop_at = now, now
end

-- The most that a limit may be; schema/budget.ts has the same.
function largest(name) return name == 'seconds' and 31536000 or name == 'attempts' and 1e6 or 1e12 end

-- Cancels everything under it, whatever `children_on_failure` says.
function stop_tree()
  if not record.children then return end
  record.cascade, record.cascade_all = cmd.cascade or record.delegator, 1
  record.follow_at = now + LIMITS.follow_ms
end

function budgeted() return { 'tokens', 'cost', 'attempts', 'seconds' } end

-- Seconds that have passed count as used.
function used_amount(b, name)
  if name == 'seconds' then return b.from and math.ceil((now - b.from) / 1000) or 0 end
  return b.used[name] or 0
end

function exceeded_amounts(b)
  local names = {}
  for _, name in ipairs(budgeted()) do
    local limit = b.limit[name]
    local is_over = limit and (used_amount(b, name) > limit or name == 'seconds' and b.from and now >= b.from + limit * 1000)
    if is_over then names[#names + 1] = name end
  end
  return names
end

-- For people, for example `tokens 120 of 100, cost 1.5 of 1 USD`.
function amounts_text(b, names)
  local list = {}
  for i, name in ipairs(names) do
    list[i] = name .. ' ' .. amount_text('cost', used_amount(b, name)) .. ' of ' .. amount_text('cost', b.limit[name]) ..
      (name == 'cost' and ' ' .. b.limit.currency or '')
  end
  return table.concat(list, ', ')
end

-- The failure, which says how much of what was used.
function over_budget_json()
  local b, shown = read_budget(), cjson.decode(failure_json('budget_exceeded'))
  local names = exceeded_amounts(b)
  if #names > 0 then shown.message = shown.message .. ': ' .. amounts_text(b, names) end
  return cjson.encode(shown)
end

-- The answer to the broker's question. `cmd.raised`: the new limits.
function raise_budget(b)
  local raised = cjson.decode(cmd.raised or '{}')
  for _, name in ipairs(budgeted()) do
    if b.limit[name] and raised[name] then b.limit[name] = raised[name] end
  end
  b.exceeded = nil
  -- The time in which the question was open does not count.
  if b.from then start_time(b, b.from + (now - record.interrupt_raised_at)) end
  judge_budget(b)
end

-- No question of an agent has such an id: theirs are hashes.
function asks_for_budget(interrupt_id) return string.sub(interrupt_id, 1, 11) == 'int_budget_' end

-- The broker's question for a larger budget: an action to approve, whose arguments can be edited. It proposes to double the limit until it exceeds the use.
function word_question()
  local b = read_budget()
  local names, proposed, over, required = exceeded_amounts(b), {}, {}, {}
  -- The worker has the time after which it asks.
  if #names == 0 then names = { 'seconds' } end
  for i, name in ipairs(names) do
    local limit, used = b.limit[name], used_amount(b, name)
    over[name], required[i] = true, quoted(name)
    local more = limit
    repeat more = 2 * more until more > used
    proposed[i] = quoted(name) .. ':' .. amount_text(name == 'tokens' and name or 'cost', math.min(more, largest(name)))
  end
  local properties = {}
  for _, name in ipairs(budgeted()) do
    if b.limit[name] then
      local is_count, used = name == 'tokens' or name == 'attempts', used_amount(b, name)
      -- More than is used, so that it is not asked for again at once; what is not exceeded may stay, and the attempt goes on.
      local least = (used == 0 or over[name]) and not is_count and '"exclusiveMinimum":' .. amount_text('cost', used)
        or '"minimum":' .. amount_text(is_count and 'tokens' or 'cost', math.max(used + (over[name] and name == 'tokens' and 1 or 0), is_count and 1 or 0))
      properties[#properties + 1] = quoted(name) .. ':{"type":"' .. (is_count and 'integer' or 'number') .. '",' .. least ..
        ',"maximum":' .. digits(largest(name)) .. '}'
    end
  end
  local id = 'int_budget_' .. digits(record.version + 1)
  local message = '{"messageId":"msg_' .. id .. '","role":"ROLE_AGENT","parts":[{"text":"More than the budget is used: ' ..
    amounts_text(b, names) .. '. May it use more?"}]}'
  cmd.fence, cmd.to, cmd.interrupt_id = record.fence, 'input_required', id
  cmd.interrupt = '{"id":"' .. id .. '","kind":"input","requests":[{"request_id":"budget","message":' .. message ..
    ',"schema":{"type":"object","properties":{' .. table.concat(properties, ',') ..
    '},"required":[' .. table.concat(required, ',') .. '],"additionalProperties":false},"action":{"name":"raise_budget","arguments":{' .. table.concat(proposed, ',') ..
    '}},"edit":true}]}'
  argv[3] = message
end

function limit_json(limit)
  local list = {}
  for _, name in ipairs(budgeted()) do
    if limit[name] then list[#list + 1] = quoted(name) .. ':' .. amount_text(name == 'tokens' and name or 'cost', limit[name]) end
  end
  if limit.currency then list[#list + 1] = '"currency":' .. quoted(limit.currency) end
  return '{' .. table.concat(list, ',') .. '}'
end

function shown_members(b)
  local used = '"tokens":' .. digits(b.used.tokens) .. ',"attempts":' .. digits(b.used.attempts)
  if b.currency then
    used = used .. ',"cost":' .. amount_text('cost', b.used.cost) .. ',"currency":' .. quoted(b.currency)
  end
  return (b.limit and '"limit":' .. limit_json(b.limit) .. ',' or '') .. '"used":{' .. used .. '}' ..
    (b.of and ',"of":' .. quoted(b.of) or '') .. (b.on_budget and ',"on_budget":' .. quoted(b.on_budget) or '') ..
    (b.exceeded and ',"exceeded":true' or '')
end

function shown_budget(b) return '{' .. shown_members(b) .. ',"stops_at":' .. quoted(iso(record.stop_at)) .. '}' end

function hidden_members(b)
  return (b.currency and ',"currency":' .. quoted(b.currency) or '') .. ',"begun":' .. digits(b.begun) ..
    (b.from and ',"from":' .. digits(b.from) or '')
end
