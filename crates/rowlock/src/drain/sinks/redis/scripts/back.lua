-- purpose: what every script knows: the keys below one prefix, and how a taken job goes back
--
-- P:held      by id "TOKEN LANE ATTEMPT KEY": all that is here, under the claim it was sent with; "-TOKEN ..."
--             once it was called back. KEY may have spaces in it.
-- P:ready:*   by lane what nobody has taken, as entries "ID TOKEN DUE LANE BODY" without line breaks
-- P:parcel:*  by the token of a take its worker, then its entries
-- P:done:*    by the same token the ids of it that the worker has no longer
-- P:begun     by worker the suspect that it has begun, as "ID TAKE"
-- P:dirty     there may be entries in a lane that are not held any more, or not under their token
--
-- One job costs as little as possible: commands take many values at once, texts of many jobs are handed
-- on as a whole, and who has a job is written down by the take. What is rare looks through everything
-- instead.
local P = KEYS[1]
local HELD, LANES, ASKED, DIRTY = P .. ':held', P .. ':lanes', P .. ':asked', P .. ':dirty'
local REPORTS, TALLY, WORKERS, BEGUN = P .. ':reports', P .. ':tally', P .. ':workers', P .. ':begun'
local READY, PARCEL, DONE = P .. ':ready:', P .. ':parcel:', P .. ':done:'
local ALIVE, RUNNING = P .. ':worker:', P .. ':running:'
local call, match, sub, gmatch = redis.call, string.match, string.sub, string.gmatch

-- Lua hands on fewer than 8,000 values at once. Even, for pairs.
local MOST = 6000

local function spread(command, key, values)
  for at = 1, #values, MOST do
    call(command, key, unpack(values, at, math.min(at + MOST - 1, #values)))
  end
end

local function gather(command, key, values)
  if #values == 0 then return {} end
  if #values <= MOST then return call(command, key, unpack(values)) end
  local found = {}
  for at = 1, #values, MOST do
    local some = call(command, key, unpack(values, at, math.min(at + MOST - 1, #values)))
    for n = 1, #some do found[#found + 1] = some[n] end
  end
  return found
end

local function count(what, by)
  if by ~= 0 then call('HINCRBY', TALLY, what, by) end
end

local function is_alive(worker)
  return call('EXISTS', ALIVE .. worker) == 1
end

local function sent_under(held)
  return match(held, '^%-?(%S+)')
end

-- What a worker would say about a job that goes back to the store without one.
local function told_of(held, wanted)
  local kind, attempt, key = match(held, '^%S+ [^/]+/([^/]+)%S* (%d+) (.*)$')
  local verdict = wanted == 'cancel' and 'cancelled' or 'release'
  local said = { said = verdict, kind = kind, attempt = tonumber(attempt) }
  if sub(key, 1, 1) == '=' then said.unique_key = sub(key, 2) end
  return cjson.encode(said)
end

local function report(take, worker, jobs, told)
  if #told > 0 then
    call('XADD', REPORTS, '*', 'take', take, 'worker', worker, 'jobs', table.concat(jobs, ' '),
      'told', table.concat(told, '\n'))
    count('told', #told)
  end
end

-- A full Redis refuses a script whose first change needs memory, and nothing of one that has changed
-- something. This changes nothing: workers, who make room, are never refused.
local function insist()
  call('PERSIST', HELD)
end

-- The entries of a take that its worker still has, by id; or only those that `only` names.
local function open_jobs(take, only)
  local ids, entries, found = {}, {}, {}
  for n, entry in ipairs(call('LRANGE', PARCEL .. take, 1, -1)) do
    ids[n], entries[n] = match(entry, '^%d+') or '0', entry
  end
  local done = gather('SMISMEMBER', DONE .. take, ids)
  local kept = {}
  for n, id in ipairs(ids) do
    if done[n] == 0 and (not only or only[id]) then
      found[id] = entries[n]
      kept[#kept + 1] = id
    end
  end
  return kept, found
end

-- Jobs that a worker has no longer; a take of which nothing is left is closed.
local function let_go(take, worker, ids)
  spread('SADD', DONE .. take, ids)
  if call('SCARD', DONE .. take) >= call('LLEN', PARCEL .. take) - 1 then
    call('DEL', DONE .. take, PARCEL .. take)
    call('SREM', RUNNING .. worker, take)
  end
end

-- Jobs of a take go to the front of their lanes in their old order: those that `only` names, or all.
-- One that was called back meanwhile is reported instead. How many went.
local function give_back(take, worker, only)
  local lanes, jobs, told, back = {}, {}, {}, 0
  local ids, entries = open_jobs(take, only)
  local asked = call('EXISTS', ASKED) == 1
  -- The last one first, as LPUSH wants them.
  for n = #ids, 1, -1 do
    local id = ids[n]
    local token, lane = match(entries[id], '^%d+ (%S+) %S+ (%S+) ')
    local wanted = asked and token and call('HGET', ASKED, id)
    wanted = wanted and match(wanted, '^' .. token .. ' (%a+)$')
    local held = wanted and call('HGET', HELD, id)
    if held then
      jobs[#jobs + 1] = id .. ' ' .. token
      told[#told + 1] = told_of(held, wanted)
    elseif lane then
      lanes[lane] = lanes[lane] or {}
      table.insert(lanes[lane], entries[id])
      back = back + 1
    end
  end
  insist()
  let_go(take, worker, ids)
  spread('HDEL', ASKED, ids)
  for lane, some in pairs(lanes) do
    spread('LPUSH', READY .. lane, some)
    call('SADD', LANES, lane)
  end
  report(take, worker, jobs, told)
  count('taken', -#ids)
  count('ready', back)
  if back > 0 then call('PUBLISH', P .. ':bell', '') end
  return #ids
end

-- Calls `look` with every take and its worker.
local function each_take(look)
  for _, worker in ipairs(call('SMEMBERS', WORKERS)) do
    for _, take in ipairs(call('SMEMBERS', RUNNING .. worker)) do look(take, worker) end
  end
end

-- The jobs, as "ID TOKEN", whose verdicts wait.
local function said()
  local found = {}
  for _, entry in ipairs(call('XRANGE', REPORTS, '-', '+')) do
    local fields = entry[2]
    for n = 1, #fields, 2 do
      if fields[n] == 'jobs' then
        for id, token in gmatch(fields[n + 1], '(%S+) (%S+)') do found[id .. ' ' .. token] = true end
      end
    end
  end
  return found
end
