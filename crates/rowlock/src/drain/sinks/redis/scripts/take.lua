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
  insist()
  call('SET', alive, ARGV[3], 'PX', ARGV[3])
  call('SADD', WORKERS, worker)
  return { 'ok' }
end

local lease = call('GET', alive)
if not lease then return { 'lost' } end

-- What it took under tokens that it doesn't hold goes back.
local function release(holds)
  local released = 0
  for _, take in ipairs(call('SMEMBERS', running)) do
    if not holds[take] then released = released + give_back(take, worker) end
  end
  return released
end

if what == 'leave' then
  release({})
  call('DEL', alive)
  call('HDEL', BEGUN, worker)
  call('SREM', WORKERS, worker)
  return { 'ok' }
end

if what == 'begin' then
  local id, take = ARGV[3], ARGV[4]
  if call('LINDEX', PARCEL .. take, 0) ~= worker then return { 'lost' } end
  if not open_jobs(take, { [id] = true })[1] then return { 'lost' } end
  insist()
  call('HSET', BEGUN, worker, id .. ' ' .. take)
  return { 'ok' }
end

if what == 'beat' then
  call('PEXPIRE', alive, lease)
  -- Whoever has jobs must be known: the list may have been lost.
  call('SADD', WORKERS, worker)
  local holds = {}
  for n = 3, #ARGV do holds[ARGV[n]] = true end
  local released = release(holds)
  local cancel, stop = {}, {}
  local asked, wanted = call('HGETALL', ASKED), {}
  for at = 1, #asked, 2 do
    local held = call('HGET', HELD, asked[at])
    local token, how = match(asked[at + 1], '^(%S+) (%a+)$')
    if held and sent_under(held) == token then
      wanted[asked[at]] = how
    else
      call('HDEL', ASKED, asked[at])
    end
  end
  if next(wanted) then
    for _, take in ipairs(call('SMEMBERS', running)) do
      for _, id in ipairs(open_jobs(take, wanted)) do
        local list = wanted[id] == 'cancel' and cancel or stop
        list[#list + 1] = id
      end
    end
  end
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
        due[lane] = first and tonumber(match(first, '^%S+ %S+ (%S+)')) or 0
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

local entries = {}
local dirty = call('EXISTS', DIRTY) == 1

-- Of entries those whose jobs are held under their token.
local function clean(some)
  local named, kept = {}, {}
  for n = 1, #some do named[n] = match(some[n], '^%d+') or '' end
  local held = gather('HMGET', HELD, named)
  for n = 1, #some do
    if held[n] and match(held[n], '^%S+') == match(some[n], '^%S+ (%S+)') then
      kept[#kept + 1] = some[n]
    end
  end
  return kept
end

-- Takes from one lane. How many, and whether it has run dry.
local function take_lane(lane, most)
  local some = call('LPOP', READY .. lane, most)
  if not some then return 0, true end
  local is_dry = #some < most
  if dirty then some = clean(some) end
  local before = #entries
  for n = 1, #some do entries[before + n] = some[n] end
  return #some, is_dry
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
      local room = math.min(limit - #entries, most, (caps[name] or limit) - levels.taken)
      levels.taken = levels.taken + take(levels, room)
    end
  end
end
if dirty and call('EXISTS', LANES) == 0 then call('DEL', DIRTY) end
if #entries == 0 then return { 'ok', entries } end

-- The same token may come twice, when an answer was lost.
call('SADD', WORKERS, worker)
if call('SADD', running, token) == 1 then call('RPUSH', PARCEL .. token, worker) end
spread('RPUSH', PARCEL .. token, entries)
count('ready', -#entries)
count('taken', #entries)
return { 'ok', entries }
