-- purpose: jobs arrive, unless it is too late for them or the place is another store's
-- arguments: deadline in ms, store, then for each lane: its name, how many jobs, their ids, their ids
--            and what P:held has of them, their entries
local time = call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then return { 'late' } end
local owner = call('GET', P .. ':owner')
if owner ~= ARGV[2] then return { 'owner', owner or '' } end

-- Some are held already. A push that is made again changes nothing about what has arrived; whatever
-- was here under another claim is here no more.
local function replace(first, n, before)
  local held, entries, tokens = {}, {}, {}
  for job = 1, n do
    local id, label = ARGV[first + job - 1], ARGV[first + n + 2 * job - 1]
    local old = before[job]
    if not old or sent_under(old) ~= sent_under(label) then
      held[#held + 1] = id
      held[#held + 1] = label
      entries[#entries + 1] = ARGV[first + 3 * n + job - 1]
      if old then tokens[id] = sent_under(old) end
    end
  end
  if not next(tokens) then return held, entries end
  -- The first that is written needs memory: a full Redis refuses here, or not at all.
  call('SET', DIRTY, 1)
  each_take(function(take, worker)
    local taken = open_jobs(take, tokens)
    let_go(take, worker, taken)
    count('taken', -#taken)
    for _, id in ipairs(taken) do tokens[id] = nil end
  end)
  local ended = said()
  for id, token in pairs(tokens) do
    if not ended[id .. ' ' .. token] then count('ready', -1) end
  end
  return held, entries
end

-- Nothing is held, and still something waits: Redis has thrown away what it was.
local lost = call('EXISTS', HELD) == 0 and call('EXISTS', LANES) == 1
local at, pushed = 3, 0
while at <= #ARGV do
  local lane, n = ARGV[at], tonumber(ARGV[at + 1])
  local first = at + 2
  local before, known = call('HMGET', HELD, unpack(ARGV, first, first + n - 1)), false
  for job = 1, n do known = known or before[job] end
  if not known then
    call('HSET', HELD, unpack(ARGV, first + n, first + 3 * n - 1))
    call('RPUSH', READY .. lane, unpack(ARGV, first + 3 * n, first + 4 * n - 1))
    pushed = pushed + n
  else
    local held, entries = replace(first, n, before)
    spread('HSET', HELD, held)
    spread('RPUSH', READY .. lane, entries)
    pushed = pushed + #entries
  end
  call('SADD', LANES, lane)
  at = first + 4 * n
end
if lost then call('SET', DIRTY, 1) end
if pushed > 0 then
  count('ready', pushed)
  call('INCRBY', P .. ':pushed', pushed)
  call('PUBLISH', P .. ':bell', '')
end
-- What waits to be taken, and what waits to be fetched: both are in the way.
local tally = call('HMGET', TALLY, 'ready', 'told')
return { 'ok', tostring((tally[1] or 0) + (tally[2] or 0)) }
