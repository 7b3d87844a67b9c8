-- purpose: the least that a queue has to do: results of what was taken before, and the next bodies
-- keys: bodies, results; arguments: how many bodies, then the results
if #ARGV > 1 then redis.call('RPUSH', KEYS[2], unpack(ARGV, 2)) end
return redis.call('LPOP', KEYS[1], ARGV[1])
