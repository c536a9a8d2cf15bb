-- Usage: what the attempts have used, as their holders report it. A report is of its lease so far. An attempt can have
-- several leases, one after the other: a question or a release ends a lease, but no attempt.
--
-- The own field `usage` is JSON: `attempts`, the newest ones with a report, oldest first; and `partial`, which is true if
-- an earlier attempt ended without a final report. Of each attempt: its number, the `fence` of the last lease that
-- reported, its report (`now`), what the earlier leases reported together (`before`), the model, `partial`, which
-- is true if a lease of it ended without a final report, and `complete`, which is true after a reply with usage. The packed
-- field `used` is the total of all attempts, as JSON; a guard needs no command to read it.

function amounts() return { 'input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens', 'cost' } end

-- The report must be in the currency of the earlier ones, and no amount of a lease may shrink.
function guard_usage()
  local report = cmd.usage
  report.total = cjson.decode(record.used or '{}')
  report.stored = cjson.decode(redis.call('HGET', key, 'usage') or '{"attempts":[]}')
  local currency = report.total.currency or (record.budget and read_budget().currency)
  if currency and report.currency and report.currency ~= currency then
    return { kind = 'usage_currency', currency = currency, of_budget = record.budget and read_budget().currency ~= nil or nil }
  end
  if report.cost then report.cost = tonumber(amount_text('cost', report.cost)) end
  local attempts = report.stored.attempts
  local last = attempts[#attempts]
  if not last or last.fence ~= cmd.fence then return nil end
  for _, name in ipairs(amounts()) do
    local before, reported = last.now[name] or 0, report[name]
    if reported and reported < before then
      return { kind = 'usage_shrinks', amount = name, before = before, reported = reported }
    end
  end
end

function store_usage()
  local report, total = cmd.usage, cmd.usage.total
  local attempt = reported_attempt(report.stored)
  report.added = {}
  for _, name in ipairs(amounts()) do
    if report[name] then
      report.added[name] = report[name] - (attempt.now[name] or 0)
      attempt.now[name] = report[name]
      total[name] = capped((total[name] or 0) + report.added[name])
    end
  end
  total.currency = total.currency or report.currency
  attempt.model = report.model or attempt.model
  -- Only replies drop the lease.
  attempt.complete = rule.lease == 'drop' and not attempt.partial or nil
  record.used = amounts_json(total)
  store('usage', usage_text(report.stored))
  if rule.event and not finishes then show('usage', record.used) end
  count_periods()
end

-- Adds the report to what its agent and the delegator of its root have used today and in this month, in the step that accepts
-- it: the sums are exact. A delegator has a sum in each shard, so that the step needs no other shard; readers add them up. Limit:
-- there are no sums of an agent without budgets, nor of trees that were delegated with a token without budgets.
--   {errand:0}:spent:2026-11-28 → scout "1500", scout USD "0.02", by:caller:alice "1500", by:caller:alice USD "0.02"
function count_periods()
  local added = cmd.usage.added
  local tokens, cost = (added.input_tokens or 0) + (added.output_tokens or 0), added.cost or 0
  if tokens == 0 and cost == 0 then return end
  if settings('adds_up').adds_up then add_up(record.target, tokens, cost) end
  if record.counted then add_up('by:' .. (record.root_delegator or record.delegator), tokens, cost) end
end

function add_up(who, tokens, cost)
  local priced = who .. ' ' .. (cmd.usage.total.currency or '')
  local day = string.sub(iso(now), 1, 10)
  for period, kept_ms in pairs({ [day] = LIMITS.spent_day_ms, [string.sub(day, 1, 7)] = LIMITS.spent_month_ms }) do
    local name = base .. ':spent:' .. period
    local known = redis.call('HMGET', name, who, priced)
    redis.call('HSET', name, who, digits(capped((tonumber(known[1] or '') or 0) + tokens)))
    if cost > 0 then redis.call('HSET', name, priced, amount_text('cost', (tonumber(known[2] or '') or 0) + cost)) end
    redis.call('PEXPIRE', name, kept_ms)
  end
end

-- The attempt that the report belongs to. The lease of a reclaim stays with the attempt that it began in.
function reported_attempt(stored)
  local attempts = stored.attempts
  local last = attempts[#attempts]
  if last and last.fence == cmd.fence then return last end
  if last and last.attempt == record.attempt then
    -- A holder reports before it asks or waits. A lease that ended in another way may have used more.
    for fence = last.fence, cmd.fence - 1 do
      local reason = lost_reason(string.sub(record.ends, fence, fence))
      if reason ~= 'interrupted' and reason ~= 'awaiting' then last.partial = true end
    end
    for _, name in ipairs(amounts()) do
      local sum = (last.before[name] or 0) + (last.now[name] or 0)
      last.before[name] = sum > 0 and capped(sum) or nil
    end
    last.fence, last.now = cmd.fence, {}
    return last
  end
  local whole = last and last.complete and last.attempt or 0
  if whole ~= record.attempt - 1 then stored.partial = true end
  local new = { attempt = record.attempt, fence = cmd.fence, before = {}, now = {} }
  attempts[#attempts + 1] = new
  if #attempts > LIMITS.usage_attempts then table.remove(attempts, 1) end
  return new
end

-- What the report adds, for the outcome.
function added_usage()
  local added = cmd.usage.added
  added.delegator, added.currency = record.delegator, cmd.usage.total.currency
  return added
end

-- Sums stay exact integers.
function capped(amount) return math.min(amount, 9007199254740991) end

-- The script's JSON encoder would round large integers.
function amount_text(name, amount)
  return name == 'cost' and string.format('%.12g', amount) or digits(amount)
end

function amounts_json(of)
  local list = {}
  for _, name in ipairs(amounts()) do
    if of[name] then list[#list + 1] = quoted(name) .. ':' .. amount_text(name, of[name]) end
  end
  if of.currency then list[#list + 1] = '"currency":' .. quoted(of.currency) end
  return '{' .. table.concat(list, ',') .. '}'
end

function usage_text(stored)
  local list = {}
  for i, one in ipairs(stored.attempts) do
    list[i] = '{"attempt":' .. digits(one.attempt) .. ',"fence":' .. digits(one.fence) .. ',"before":' ..
      amounts_json(one.before) .. ',"now":' .. amounts_json(one.now) ..
      (one.model and ',"model":' .. cjson.encode(one.model) or '') .. (one.complete and ',"complete":true' or '') ..
      (one.partial and ',"partial":true' or '') .. '}'
  end
  return '{' .. (stored.partial and '"partial":true,' or '') .. '"attempts":[' .. table.concat(list, ',') .. ']}'
end
