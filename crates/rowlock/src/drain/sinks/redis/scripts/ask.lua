-- purpose: a drain asks what is held, and has it forgotten or called back
-- arguments: what, and
--   open: the store, which run of Redis this is, how many keys it has evicted
--   list: where to go on; answer: where to go on, then id and token of each that waits
--   holds: for each job: id, token; answer: for each job H held, B bereft, G gone
--   bereft: how many at most; answer: for each job: id, token, whether it had begun alone, entry
--   forget: how many reports, for each its id in the stream and how many verdicts it has, how many jobs
--           were reported, then for each job id and token: first those
--   recall: for each job: id, token, cancel or stop
--   fill: nothing; answer: ready, taken, told, living workers, ever pushed, of these sent again
local what = ARGV[1]

-- The ids of jobs that are named and held under the token they are named with, and what is held.
local function named(first, last, width)
  local ids, held, found = {}, {}, {}
  for at = first, last, width do ids[#ids + 1] = ARGV[at] end
  local all = gather('HMGET', HELD, ids)
  for n = 1, #ids do
    if all[n] and sent_under(all[n]) == ARGV[first + (n - 1) * width + 1] then
      found[#found + 1] = ids[n]
      held[ids[n]] = all[n]
    end
  end
  return found, held
end

-- Of these, by id, those that workers have: in which take, and whose it is.
local function taken_of(ids)
  local only, taken = {}, {}
  for _, id in ipairs(ids) do only[id] = true end
  if #ids > 0 then
    each_take(function(take, worker)
      for _, id in ipairs(open_jobs(take, only)) do taken[id] = { take, worker } end
    end)
  end
  return taken
end

-- Redis may have thrown single keys away. What is held and nowhere to be found is forgotten. Whether
-- there was any.
local function audit(evicted)
  local ready, taken, told, found = 0, 0, 0, said()
  for _ in pairs(found) do told = told + 1 end
  local lanes = call('SMEMBERS', LANES)
  for _, lane in ipairs(lanes) do ready = ready + call('LLEN', READY .. lane) end
  each_take(function(take)
    taken = taken + math.max(call('LLEN', PARCEL .. take) - 1, 0) - call('SCARD', DONE .. take)
  end)
  -- Entries that are not held any more hide a loss from whoever only counts.
  local hidden = evicted and call('EXISTS', DIRTY) == 1
  if not hidden and call('HLEN', HELD) <= ready + taken + told then return false end
  for _, lane in ipairs(lanes) do
    for at = 0, call('LLEN', READY .. lane), 100 do
      for _, entry in ipairs(call('LRANGE', READY .. lane, at, at + 99)) do
        found[match(entry, '^%S+ %S+') or ''] = true
      end
    end
  end
  each_take(function(take)
    local _, entries = open_jobs(take)
    for _, entry in pairs(entries) do found[match(entry, '^%S+ %S+') or ''] = true end
  end)
  local held, lost = call('HGETALL', HELD), {}
  for at = 1, #held, 2 do
    if not found[held[at] .. ' ' .. sent_under(held[at + 1])] then lost[#lost + 1] = held[at] end
  end
  if #lost == 0 then return false end
  insist()
  spread('HDEL', HELD, lost)
  call('SET', DIRTY, 1)
  call('HSET', TALLY, 'ready', ready, 'taken', taken, 'told', told)
  return true
end

if what == 'open' then
  local owner = call('GET', P .. ':owner')
  if owner and owner ~= ARGV[2] then return { 'owner', owner } end
  local now, before = ARGV[3] .. ' ' .. ARGV[4], call('GET', P .. ':evicted')
  local lost = audit(before ~= now)
  if owner and not lost and before == now then return { 'known' } end
  insist()
  call('SET', P .. ':owner', ARGV[2])
  call('SET', P .. ':evicted', now)
  if not owner or lost then return { 'new' } end
  return { match(before or '', '^%S+') == ARGV[3] and 'known' or 'restarted' }
end

if what == 'holds' then
  local bereft, ids, answers = {}, {}, {}
  each_take(function(take, worker)
    if not is_alive(worker) then
      for _, id in ipairs(open_jobs(take)) do bereft[id] = true end
    end
  end)
  for at = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
  local held = gather('HMGET', HELD, ids)
  for n, id in ipairs(ids) do
    local is_held = held[n] and sent_under(held[n]) == ARGV[2 * n + 1]
    answers[n] = not is_held and 'G' or bereft[id] and 'B' or 'H'
  end
  return table.concat(answers)
end

if what == 'bereft' then
  local most, found = tonumber(ARGV[2]), {}
  for _, worker in ipairs(call('SMEMBERS', WORKERS)) do
    if not is_alive(worker) then
      local left = false
      for _, take in ipairs(call('SMEMBERS', RUNNING .. worker)) do
        local ids, entries = open_jobs(take)
        local held = gather('HMGET', HELD, ids)
        for n = 1, #ids do
          if held[n] then
            left = true
            if #found < most then
              local begun = call('HGET', BEGUN, worker) == ids[n] .. ' ' .. take
              found[#found + 1] =
                { ids[n], sent_under(held[n]), begun and 1 or 0, entries[ids[n]] }
            end
          end
        end
      end
      if not left then
        for _, take in ipairs(call('SMEMBERS', RUNNING .. worker)) do
          call('DEL', DONE .. take, PARCEL .. take)
        end
        call('DEL', RUNNING .. worker)
        call('HDEL', BEGUN, worker)
        call('SREM', WORKERS, worker)
      end
    end
  end
  return found
end

if what == 'forget' then
  local reports = tonumber(ARGV[2])
  for at = 3, 2 + 2 * reports, 2 do
    -- Another drain may have been faster.
    if call('XDEL', REPORTS, ARGV[at]) == 1 then count('told', -ARGV[at + 1]) end
  end
  local first = 4 + 2 * reports
  local others = first + 2 * tonumber(ARGV[first - 1])
  local ended = named(first, others - 1, 2)
  spread('HDEL', HELD, ended)
  -- Nobody has said anything about the others: a worker that died had them, or they still wait.
  local rest, held = named(others, #ARGV, 2)
  if #rest > 0 then
    spread('HDEL', HELD, rest)
    spread('HDEL', ASKED, rest)
    local taken = taken_of(rest)
    for _, id in ipairs(rest) do
      if taken[id] then
        let_go(taken[id][1], taken[id][2], { id })
        count('taken', -1)
      elseif sub(held[id], 1, 1) ~= '-' then
        call('SET', DIRTY, 1)
        count('ready', -1)
      end
    end
  end
  -- What nobody can hold any more goes at the latest when nothing is held.
  if #ended + #rest > 0 and call('EXISTS', HELD) == 0 then
    for _, lane in ipairs(call('SMEMBERS', LANES)) do call('UNLINK', READY .. lane) end
    call('DEL', LANES, DIRTY)
    call('HDEL', TALLY, 'ready', 'taken')
    if call('XLEN', REPORTS) == 0 then call('DEL', TALLY) end
  end
  return #ended + #rest
end

if what == 'list' then
  local page, ids, held = call('HSCAN', HELD, ARGV[2], 'COUNT', 1000), {}, {}
  for at = 1, #page[2], 2 do
    ids[#ids + 1] = page[2][at]
    held[page[2][at]] = page[2][at + 1]
  end
  local taken, ended, found = taken_of(ids), said(), { page[1] }
  for _, id in ipairs(ids) do
    local token = sent_under(held[id])
    if not taken[id] and not ended[id .. ' ' .. token] then
      found[#found + 1] = id
      found[#found + 1] = token
    end
  end
  return found
end

if what == 'recall' then
  local found, held = named(2, #ARGV, 3)
  local wanted, taken = {}, taken_of(found)
  insist()
  for at = 2, #ARGV, 3 do wanted[ARGV[at]] = ARGV[at + 2] end
  -- A verdict that waits is the last word.
  local ended = said()
  local changed, jobs, told = {}, {}, {}
  for _, id in ipairs(found) do
    local job = id .. ' ' .. sent_under(held[id])
    if taken[id] then
      call('HSET', ASKED, id, sent_under(held[id]) .. ' ' .. wanted[id])
    elseif not ended[job] and sub(held[id], 1, 1) ~= '-' then
      changed[#changed + 1] = id
      changed[#changed + 1] = '-' .. held[id]
      jobs[#jobs + 1] = job
      told[#told + 1] = told_of(held[id], wanted[id])
    end
  end
  if #jobs > 0 then
    call('SET', DIRTY, 1)
    spread('HSET', HELD, changed)
    report('-', '-', jobs, told)
    count('ready', -#jobs)
  end
  return #jobs
end

if what == 'fill' then
  local tally = call('HMGET', TALLY, 'ready', 'taken', 'told')
  local workers = 0
  for _, worker in ipairs(call('SMEMBERS', WORKERS)) do
    if is_alive(worker) then workers = workers + 1 end
  end
  local counts = call('MGET', P .. ':pushed', P .. ':resent')
  return { tally[1] or '0', tally[2] or '0', tally[3] or '0', workers, counts[1] or '0', counts[2] or '0' }
end

return redis.error_reply('ERR ask.lua knows no ' .. what)
