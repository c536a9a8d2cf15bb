-- The last part of the script: runs the commands of a call one after another. An error in one ends only that one.
--
-- KEYS     of each command: `first_key` of main.lua, then its taker's agent key, if it has a taker
-- ARGV     the number of commands; for each the number of its keys and of its arguments; then the arguments of all:
--          `args` of main.lua, then the taker's command
-- Returns  the answer of each command, or its error
local replies, key, at = {}, 1, 2 + 2 * ARGV[1]
for i = 1, ARGV[1] do
  local keys, args = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local taker = keys == 2 and { KEYS[key + 1], ARGV[at + args - 1] } or nil
  local ok, reply = pcall(transition, KEYS[key], { unpack(ARGV, at, at + args - 1) }, taker)
  if not ok then reply = { err = type(reply) == 'table' and reply.err or 'ERR ' .. tostring(reply) } end
  replies[i] = reply
  key, at = key + keys, at + args
end
return replies
