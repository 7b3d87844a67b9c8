-- purpose: a worker joins, beats, takes and leaves; whoever is not alive gets nothing
-- arguments: what, worker, and
--   join: lease in ms
--   beat: the tokens it holds
--   begin: a suspect's id, the token it was taken under
--   take: token, limit, suspect, turn, order, then four lists, each after its length: queues, kinds,
--         queue and limit, queue and weight
local what, worker = ARGV[1], ARGV[2]
local alive, running = ALIVE .. worker, RUNNING .. worker

if what == 'join' then
  -- First what frees memory: once a script has done that, a full Redis lets it go on.
  call('DEL', alive)
  call('SET', alive, ARGV[3], 'PX', ARGV[3])
  call('SADD', WORKERS, worker)
  return { 'ok' }
end

local lease = call('GET', alive)
if not lease then return { 'lost' } end

-- What it took under tokens that it doesn't hold goes back.
local function release(holds)
  local jobs, gone = {}, {}
  local takes = call('HGETALL', running)
  for at = 1, #takes, 2 do
    local take = match(takes[at], '^ids:(.+)$')
    if take and not holds[take] then
      for _, job in ipairs(still_taken(words(takes[at + 1]), take, worker)) do
        jobs[#jobs + 1] = job
      end
      gone[#gone + 1] = 'ids:' .. take
      gone[#gone + 1] = 'left:' .. take
    end
  end
  spread('HDEL', running, gone)
  give_back(jobs)
  return #jobs
end

if what == 'leave' then
  release({})
  call('DEL', alive, running)
  call('SREM', WORKERS, worker)
  return { 'ok' }
end

if what == 'begin' then
  local held = call('HGET', HELD, ARGV[3])
  local taken = 't ' .. ARGV[4] .. ' ' .. worker .. ' '
  if not held or sub(held, 1, #taken) ~= taken then return { 'lost' } end
  -- First what frees memory: a full Redis takes this in as well.
  call('HDEL', running, 'begun')
  call('HSET', running, 'begun', ARGV[3] .. ' ' .. ARGV[4])
  return { 'ok' }
end

if what == 'beat' then
  call('PEXPIRE', alive, lease)
  -- Whoever has jobs must be known: the list may have been lost.
  call('SADD', WORKERS, worker)
  local holds = {}
  for n = 3, #ARGV do holds[ARGV[n]] = true end
  local released = release(holds)
  local cancel, stop, moot = {}, {}, {}
  local asked = call('HGETALL', ASKED)
  for at = 1, #asked, 2 do
    local token, wanted = match(asked[at + 1], '^(%S+) (%a+)$')
    local held = call('HGET', HELD, asked[at])
    if not held or sub(held, 1, 1) ~= 't' or sent_under(held) ~= token then
      moot[#moot + 1] = asked[at]
    elseif match(held, '^t %S+ (%S+)') == worker then
      local list = wanted == 'cancel' and cancel or stop
      list[#list + 1] = asked[at]
    end
  end
  spread('HDEL', ASKED, moot)
  return { 'ok', released, cancel, stop }
end

local token, limit, suspect = ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local turn, order = tonumber(ARGV[6]), ARGV[7]
local at = 8
local function list(width)
  local found, ends = {}, at + tonumber(ARGV[at]) * width
  for n = at + 1, ends do found[#found + 1] = ARGV[n] end
  at = ends + 1
  return found
end
local function by_name(pairs_)
  local found = {}
  for n = 1, #pairs_, 2 do found[pairs_[n]] = tonumber(pairs_[n + 1]) end
  return found
end
local names, kinds = list(1), {}
for _, kind in ipairs(list(1)) do kinds[kind] = true end
local caps, weights = by_name(list(2)), by_name(list(2))

-- The lanes that it may take from: of each queue, those of each priority.
local queues, wanted = {}, {}
for _, name in ipairs(names) do wanted[name] = true end
for _, lane in ipairs(call('SMEMBERS', LANES)) do
  local queue, kind, priority, mark = match(lane, '^([^/]+)/([^/]+)/([^/]+)(.*)$')
  if queue and kinds[kind] and (mark ~= '') == suspect and (#names == 0 or wanted[queue]) then
    priority = tonumber(priority)
    local levels = queues[queue]
    if not levels then
      levels = { highest = {}, taken = 0 }
      queues[queue] = levels
    end
    if not levels[priority] then
      levels[priority] = {}
      levels.highest[#levels.highest + 1] = priority
    end
    table.insert(levels[priority], lane)
  end
end
for _, levels in pairs(queues) do table.sort(levels.highest) end
if #names == 0 then
  for name in pairs(queues) do names[#names + 1] = name end
  table.sort(names)
end
if order ~= 'strict' and #names > 1 then
  local turned = {}
  for n = 1, #names do turned[n] = names[(turn + n - 1) % #names + 1] end
  names = turned
end

-- The lanes of the highest priority that has jobs, whose first job is due longest first.
local function best(levels)
  while #levels.highest > 0 do
    local lanes = levels[levels.highest[#levels.highest]]
    if #lanes == 1 then return lanes end
    if #lanes > 1 then
      local due = {}
      for _, lane in ipairs(lanes) do
        local first = call('LINDEX', READY .. lane, 0)
        due[lane] = first and tonumber(match(first, '(%S+)$')) or 0
      end
      table.sort(lanes, function(one, other)
        if due[one] == due[other] then return one < other end
        return due[one] < due[other]
      end)
      return lanes
    end
    table.remove(levels.highest)
  end
end

local ids, held = {}, {}
local taken = 't ' .. token .. ' ' .. worker

-- Takes from one lane, and whether it has run dry. What has moved on since it was put there is stale.
local function take_lane(lane, most)
  local entries = call('LPOP', READY .. lane, most)
  if not entries then return 0, true end
  local some, tokens = {}, {}
  for n = 1, #entries do some[n], tokens[n] = match(entries[n], '^(%S+) (%S+)') end
  local found, now = 0, gather(HELD, some)
  for n = 1, #some do
    local rest = now[n] and sub(now[n], 1, 1) == 'r' and sub(now[n], 2)
    if rest and match(rest, '^ (%S+)') == tokens[n] then
      found = found + 1
      ids[#ids + 1] = some[n]
      held[#held + 1] = some[n]
      held[#held + 1] = taken .. rest
    end
  end
  return found, #entries < most
end

-- Strictly by priority; lanes of the same priority share.
local function take(levels, room)
  local found = 0
  while found < room do
    local lanes = best(levels)
    if not lanes then return found end
    local dry = {}
    for n, lane in ipairs(lanes) do
      local share = math.ceil((room - found) / (#lanes - n + 1))
      if share > 0 then
        local some, is_dry = take_lane(lane, share)
        found = found + some
        if is_dry then dry[#dry + 1] = n end
      end
    end
    for n = #dry, 1, -1 do
      call('SREM', LANES, lanes[dry[n]])
      table.remove(lanes, dry[n])
    end
  end
  return found
end

local all = 0
for _, name in ipairs(names) do all = all + (weights[name] or 1) end
local function share(name)
  if order == 'strict' then return limit end
  return math.ceil(limit * (weights[name] or 1) / all)
end

-- First each queue's share, then whatever is left to those that have more.
for round = 1, 2 do
  for _, name in ipairs(names) do
    local levels = queues[name]
    if levels then
      local most = round == 1 and share(name) or limit
      local room = math.min(limit - #ids, most, (caps[name] or limit) - levels.taken)
      levels.taken = levels.taken + take(levels, room)
    end
  end
end
if #ids == 0 then return { 'ok', {}, {} } end

spread('HSET', HELD, held)
call('SADD', WORKERS, worker)
-- The same token may come twice, when an answer was lost.
local more = table.concat(ids, ' ')
local earlier = call('HGET', running, 'ids:' .. token)
call('HSET', running, 'ids:' .. token, earlier and earlier .. ' ' .. more or more)
call('HINCRBY', running, 'left:' .. token, #ids)
count('ready', -#ids)
count('taken', #ids)
return { 'ok', ids, gather(BODY, ids) }
