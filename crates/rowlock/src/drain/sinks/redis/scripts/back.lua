-- purpose: what every script knows: the keys below one prefix, and how a taken job goes back
--
-- A job that is held is, in P:held by its id, one of
--   r TOKEN DUE LANE ATTEMPT KEY                ready
--   t TAKE WORKER TOKEN DUE LANE ATTEMPT KEY    taken
--   v TOKEN                                     its verdict waits
-- TOKEN is the claim it was sent under, TAKE the one its worker has. KEY may have spaces in it.
local P = KEYS[1]
local HELD, BODY, LANES, ASKED = P .. ':held', P .. ':body', P .. ':lanes', P .. ':asked'
local REPORTS, TALLY, WORKERS = P .. ':reports', P .. ':tally', P .. ':workers'
local READY, ALIVE, RUNNING = P .. ':ready:', P .. ':worker:', P .. ':running:'
local call, match, sub = redis.call, string.match, string.sub

-- Lua hands on fewer than 8,000 values at once. Even, and a multiple of three.
local MOST = 6000

local function spread(command, key, values)
  for at = 1, #values, MOST do
    call(command, key, unpack(values, at, math.min(at + MOST - 1, #values)))
  end
end

local function gather(key, fields)
  if #fields == 0 then return {} end
  if #fields <= MOST then return call('HMGET', key, unpack(fields)) end
  local found = {}
  for at = 1, #fields, MOST do
    local some = call('HMGET', key, unpack(fields, at, math.min(at + MOST - 1, #fields)))
    for n = 1, #some do found[#found + 1] = some[n] end
  end
  return found
end

local function report(told)
  for at = 1, #told, MOST do
    call('XADD', REPORTS, '*', unpack(told, at, math.min(at + MOST - 1, #told)))
  end
end

local function count(what, by)
  if by ~= 0 then call('HINCRBY', TALLY, what, by) end
end

local function sent_under(held)
  if sub(held, 1, 1) == 't' then return match(held, '^t %S+ %S+ (%S+)') end
  return match(held, '^. (%S+)')
end

local COUNTED = { r = 'ready', t = 'taken', v = 'told' }

-- Taken jobs go to the front of their lanes, in the order they are given: {id, take, rest, worker}. One that
-- was called back meanwhile is reported instead.
local function give_back(jobs)
  if #jobs == 0 then return end
  local asked = call('EXISTS', ASKED) == 1
  local held, lanes, told, ended, ids = {}, {}, {}, {}, {}
  for n = #jobs, 1, -1 do
    local id, rest = jobs[n][1], jobs[n][3]
    local token, due, lane = match(rest, '^(%S+) (%S+) (%S+)')
    local wanted = asked and call('HGET', ASKED, id)
    wanted = wanted and match(wanted, '^' .. token .. ' (%a+)$')
    ids[#ids + 1] = id
    held[#held + 1] = id
    if wanted then
      held[#held + 1] = 'v ' .. token
      local verdict = wanted == 'cancel' and 'cancelled' or 'release'
      told[#told + 1] = id
      told[#told + 1] = '{"verdict":"' .. verdict .. '"}\n' .. jobs[n][2] .. ' ' .. jobs[n][4] .. ' ' .. rest
      ended[#ended + 1] = id
    else
      held[#held + 1] = 'r ' .. rest
      local entries = lanes[lane]
      if not entries then
        entries = {}
        lanes[lane] = entries
      end
      entries[#entries + 1] = id .. ' ' .. token .. ' ' .. due
    end
  end
  -- First what frees memory: once a script has done that, a full Redis lets it go on.
  spread('HDEL', ASKED, ids)
  spread('HDEL', BODY, ended)
  spread('HSET', HELD, held)
  for lane, entries in pairs(lanes) do
    spread('LPUSH', READY .. lane, entries)
    call('SADD', LANES, lane)
  end
  report(told)
  count('taken', -#jobs)
  count('told', #ended)
  count('ready', #jobs - #ended)
  if #jobs > #ended then call('PUBLISH', P .. ':bell', '') end
end

-- Of jobs taken under one token by one worker: those that still are.
local function still_taken(ids, take, worker)
  local found, held = {}, gather(HELD, ids)
  local taken = 't ' .. take .. ' ' .. worker .. ' '
  for n = 1, #ids do
    if held[n] and sub(held[n], 1, #taken) == taken then
      found[#found + 1] = { ids[n], take, sub(held[n], #taken + 1), worker }
    end
  end
  return found
end

local function words(text)
  local found = {}
  for word in string.gmatch(text, '%S+') do found[#found + 1] = word end
  return found
end
