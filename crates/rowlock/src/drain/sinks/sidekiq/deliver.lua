-- purpose: jobs of one claim go into one of Sidekiq's queues, each at most once
-- KEYS: the claim's marker, the set of queues, the queue's list
-- ARGV: the deadline in ms, the marker's life in seconds, the queue, then id and text of each job
-- returns how many were pushed, or -1 if it is too late
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[1]) then
  return -1
end
local sent = redis.call('GET', KEYS[1]) or ','
local ids, texts = {}, {}
for i = 4, #ARGV, 2 do
  if not string.find(sent, ',' .. ARGV[i] .. ',', 1, true) then
    ids[#ids + 1] = ARGV[i]
    texts[#texts + 1] = ARGV[i + 1]
  end
end
if #ids == 0 then
  return 0
end
-- A script that fails half-way stays half done. So the marker is written once as it was: if that is
-- allowed and there is room, so it is later. And the list fails, if at all, before anything is in it.
redis.call('SET', KEYS[1], sent, 'EX', ARGV[2])
redis.call('SADD', KEYS[2], ARGV[3])
for from = 1, #texts, 1000 do
  redis.call('LPUSH', KEYS[3], unpack(texts, from, math.min(from + 999, #texts)))
end
redis.call('SET', KEYS[1], sent .. table.concat(ids, ',') .. ',', 'EX', ARGV[2])
return #ids
