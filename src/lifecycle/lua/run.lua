-- The last part of the script: runs the commands of a call one after another. An error in one ends only that one.
--
-- KEYS     of each command: `first_key` of main.lua, then its taker's agent key, if it has a taker
-- ARGV     the number of commands; for each the numbers of its keys, of its arguments, and of its second command's;
--          then the arguments of all: `args` of main.lua, then the taker's command, then `args` of the second command
-- Returns  the outcome of each command, or its error. With a second command, which runs for the same key if the first one
--          succeeds: [outcome, second outcome or its error, or nil if it did not run]
local function outcome_or_error(ok, reply)
  if ok then return reply end
  return { err = type(reply) == 'table' and reply.err or 'ERR ' .. tostring(reply) }
end

local function succeeded(reply) return not reply.err and string.sub(reply[1], 1, 12) == '{"kind":"ok"' end

-- A question was asked that its second command was to answer, which failed. `first`: the command that asked it.
local function ask_people_instead(first_key, first)
  local asked = cjson.decode(first)
  if not asked.auto then return end
  local command = { move = 'ask_people', fields = 0, in_event = 0, interrupt_id = asked.interrupt_id }
  for _, name in ipairs({ 'id', 'base', 'clock', 'retention_ms' }) do command[name] = asked[name] end
  pcall(transition, first_key, { cjson.encode(command), '', '' })
end

local replies, key, at = {}, 1, 2 + 3 * ARGV[1]
for i = 1, ARGV[1] do
  local keys, args, second_args = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local taker = keys == 2 and { KEYS[key + 1], ARGV[at + args - 1] } or nil
  local reply = outcome_or_error(pcall(transition, KEYS[key], { unpack(ARGV, at, at + args - 1) }, taker))
  replies[i] = reply
  if second_args > 0 and not reply.err then
    local second, from = false, at + args
    if succeeded(reply) then
      second = outcome_or_error(pcall(transition, KEYS[key], { unpack(ARGV, from, from + second_args - 1) }))
      if not succeeded(second) then ask_people_instead(KEYS[key], ARGV[at]) end
    end
    replies[i] = { reply, second }
  end
  key, at = key + keys, at + args + second_args
end
return replies
