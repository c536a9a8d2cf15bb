-- ARGV: delegation, now, most files of a delegation, then for each file: tag, sha256, the delegation that names it or '' ·
-- Names all files for the delegation, or none: returns {0, their sizes}, the place of the first one that is missing, or -1 for
-- too many.
local named, more = named_key(ARGV[1]), 0
for at = 4, #ARGV, 3 do
  local tag, sha, from = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local file = tag .. ' ' .. sha
  local isMissing = redis.call('EXISTS', file_key(tag, sha)) == 0
    or (from ~= '' and redis.call('SISMEMBER', named_key(from), file) == 0)
  if isMissing then return {(at - 1) / 3} end
  more = more + 1 - redis.call('SISMEMBER', named, file)
end
if redis.call('SCARD', named) + more > tonumber(ARGV[3]) then return {-1} end
local found = {0}
for at = 4, #ARGV, 3 do
  local tag, sha = ARGV[at], ARGV[at + 1]
  found[#found + 1] = redis.call('HGET', file_key(tag, sha), 'size')
  redis.call('HDEL', file_key(tag, sha), 'fresh')
  redis.call('ZADD', refs_key(tag, sha), ARGV[2], ARGV[1])
  redis.call('SADD', named, tag .. ' ' .. sha)
end
return found
