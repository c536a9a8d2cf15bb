-- ARGV: tag, sha256, how many · Returns the delegations whose records were not looked at for longest.
return redis.call('ZRANGE', refs_key(ARGV[1], ARGV[2]), 0, ARGV[3] - 1)
