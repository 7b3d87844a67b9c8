-- purpose: a drain asks what is held, and has it forgotten or called back
-- arguments: what, and
--   open: the store, how many keys this Redis has ever evicted
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

if what == 'open' then
  local owner, evicted = call('GET', P .. ':owner'), tonumber(ARGV[3])
  if owner and owner ~= ARGV[2] then return { 'owner', owner } end
  local before = tonumber(call('GET', P .. ':evicted') or '')
  if owner and before and before >= evicted then
    if before > evicted then call('SET', P .. ':evicted', evicted) end
    return { 'known' }
  end
  -- What was evicted may have been ours, a part of what hangs together: all of it is sent again.
  for _, lane in ipairs(call('SMEMBERS', LANES)) do call('UNLINK', READY .. lane) end
  for _, worker in ipairs(call('SMEMBERS', WORKERS)) do call('UNLINK', RUNNING .. worker) end
  call('UNLINK', HELD, BODY, LANES, ASKED, REPORTS, TALLY)
  call('SET', P .. ':owner', ARGV[2])
  call('SET', P .. ':evicted', evicted)
  return { 'new' }
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
