-- purpose: a drain asks what is held, and has it forgotten or called back
-- arguments: what, and
--   open: the store, which run of Redis this is, how many keys it has evicted
--   list: where to go on; answer: where to go on, then id and token of each that waits
--   drop: how many reports, their ids in the stream, then the ids of jobs whose verdict can't be read
--   holds: for each job: id, token; answer: for each job H held, B bereft, G gone
--   bereft: how many at most; answer: for each job: id, token, whether it had begun alone, body
--   forget: how many reports, their ids in the stream, then for each job: id, token
--   recall: for each job: id, token, cancel or stop
--   fill: nothing; answer: ready, taken, told, living workers, ever pushed
local what = ARGV[1]

local function is_alive(worker)
  return call('EXISTS', ALIVE .. worker) == 1
end

local function named(from, width)
  local ids = {}
  for at = from, #ARGV, width do ids[#ids + 1] = ARGV[at] end
  return ids, gather(HELD, ids)
end

-- Whether what hangs together is all there. A part of it may have been evicted.
local function is_intact()
  local tally = call('HMGET', TALLY, 'ready', 'taken', 'told')
  local ready, taken, told = tonumber(tally[1] or 0), tonumber(tally[2] or 0), tonumber(tally[3] or 0)
  if call('HLEN', HELD) ~= ready + taken + told or call('HLEN', BODY) ~= ready + taken then return false end
  if told > 0 and call('EXISTS', REPORTS) == 0 then return false end
  if taken > 0 and call('SCARD', WORKERS) == 0 then return false end
  local listed = 0
  for _, lane in ipairs(call('SMEMBERS', LANES)) do listed = listed + call('LLEN', READY .. lane) end
  return listed >= ready
end

if what == 'open' then
  local store, run, evicted = ARGV[2], ARGV[3], tonumber(ARGV[4])
  local owner, seen = call('GET', P .. ':owner'), call('GET', P .. ':evicted')
  if owner and owner ~= store then return { 'owner', owner } end
  local seen_run, before = match(seen or '', '^(%S+) (%d+)$')
  local said = 'known'
  if not owner then
    said = 'new'
  elseif seen_run ~= run then
    said = 'restarted'
  elseif evicted > tonumber(before) and not is_intact() then
    said = 'new'
  elseif evicted <= tonumber(before) then
    return { said }
  end
  if said == 'new' then
    for _, lane in ipairs(call('SMEMBERS', LANES)) do call('UNLINK', READY .. lane) end
    for _, worker in ipairs(call('SMEMBERS', WORKERS)) do call('UNLINK', RUNNING .. worker) end
    call('UNLINK', HELD, BODY, LANES, ASKED, REPORTS, TALLY)
    call('SET', P .. ':owner', store)
  end
  call('SET', P .. ':evicted', run .. ' ' .. evicted)
  return { said }
end

if what == 'holds' then
  local ids, held = named(2, 2)
  local answers, lives = {}, {}
  for n = 1, #ids do
    answers[n] = 'G'
    if held[n] and sent_under(held[n]) == ARGV[2 * n + 1] then
      local worker = match(held[n], '^t %S+ (%S+)')
      if worker and lives[worker] == nil then lives[worker] = is_alive(worker) end
      answers[n] = (not worker or lives[worker]) and 'H' or 'B'
    end
  end
  return table.concat(answers)
end

if what == 'bereft' then
  local most, found = tonumber(ARGV[2]), {}
  for _, worker in ipairs(call('SMEMBERS', WORKERS)) do
    if not is_alive(worker) then
      local takes, left = call('HGETALL', RUNNING .. worker), false
      for at = 1, #takes, 2 do
        local take = match(takes[at], '^ids:(.+)$')
        local jobs = take and still_taken(words(takes[at + 1]), take, worker) or {}
        for _, job in ipairs(jobs) do
          left = true
          if #found < most then
            local begun = call('HGET', RUNNING .. worker, 'begun') == job[1] .. ' ' .. take
            found[#found + 1] = { job[1], match(job[3], '^(%S+)'), begun and 1 or 0, call('HGET', BODY, job[1]) or '' }
          end
        end
      end
      if not left then
        call('DEL', RUNNING .. worker)
        call('SREM', WORKERS, worker)
      end
    end
  end
  return found
end

if what == 'forget' then
  local reports = tonumber(ARGV[2])
  local entries = {}
  for n = 1, reports do entries[n] = ARGV[2 + n] end
  spread('XDEL', REPORTS, entries)
  local ids, held = named(3 + reports, 2)
  local gone, less = {}, { ready = 0, taken = 0, told = 0 }
  for n = 1, #ids do
    if held[n] and sent_under(held[n]) == ARGV[2 + reports + 2 * n] then
      gone[#gone + 1] = ids[n]
      local was = COUNTED[sub(held[n], 1, 1)]
      less[was] = less[was] - 1
    end
  end
  spread('HDEL', HELD, gone)
  spread('HDEL', BODY, gone)
  spread('HDEL', ASKED, gone)
  for was, by in pairs(less) do count(was, by) end
  -- Stale entries of the lanes go at the latest when nothing is held.
  if #gone > 0 and call('EXISTS', HELD) == 0 then
    for _, lane in ipairs(call('SMEMBERS', LANES)) do call('UNLINK', READY .. lane) end
    call('DEL', LANES, TALLY)
  end
  return #gone
end

if what == 'list' then
  local page = call('HSCAN', HELD, ARGV[2], 'COUNT', 1000)
  local found = { page[1] }
  for at = 1, #page[2], 2 do
    if sub(page[2][at + 1], 1, 1) == 'r' then
      found[#found + 1] = page[2][at]
      found[#found + 1] = sent_under(page[2][at + 1])
    end
  end
  return found
end

if what == 'drop' then
  local reports = tonumber(ARGV[2])
  local entries = {}
  for n = 1, reports do entries[n] = ARGV[2 + n] end
  spread('XDEL', REPORTS, entries)
  local ids, held = named(3 + reports, 1)
  local gone = {}
  for n = 1, #ids do
    if held[n] and sub(held[n], 1, 1) == 'v' then gone[#gone + 1] = ids[n] end
  end
  spread('HDEL', HELD, gone)
  spread('HDEL', BODY, gone)
  count('told', -#gone)
  return #gone
end

if what == 'recall' then
  local ids, held = named(2, 3)
  local changed, told, ended, asked = {}, {}, {}, {}
  for n = 1, #ids do
    local token, wanted = ARGV[3 * n], ARGV[3 * n + 1]
    if held[n] and sent_under(held[n]) == token then
      local state = sub(held[n], 1, 1)
      if state == 'r' then
        ended[#ended + 1] = ids[n]
        changed[#changed + 1] = ids[n]
        changed[#changed + 1] = 'v ' .. token
        local verdict = wanted == 'cancel' and 'cancelled' or 'release'
        told[#told + 1] = ids[n]
        told[#told + 1] = '{"verdict":"' .. verdict .. '"}\n' .. token .. ' -' .. sub(held[n], 2)
      elseif state == 't' then
        asked[#asked + 1] = ids[n]
        asked[#asked + 1] = token .. ' ' .. wanted
      end
    end
  end
  spread('HDEL', BODY, ended)
  spread('HSET', HELD, changed)
  report(told)
  -- First what frees memory: a full Redis takes this in as well.
  spread('HDEL', ASKED, ids)
  spread('HSET', ASKED, asked)
  count('ready', -#ended)
  count('told', #ended)
  return #ended
end

if what == 'fill' then
  local tally = call('HMGET', TALLY, 'ready', 'taken', 'told')
  local workers = 0
  for _, worker in ipairs(call('SMEMBERS', WORKERS)) do
    if is_alive(worker) then workers = workers + 1 end
  end
  local pushed = call('GET', P .. ':pushed')
  return { tally[1] or '0', tally[2] or '0', tally[3] or '0', workers, pushed or '0' }
end

return redis.error_reply('ERR ask.lua knows no ' .. what)
