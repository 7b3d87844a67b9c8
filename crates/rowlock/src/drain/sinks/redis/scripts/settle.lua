-- purpose: verdicts of workers wait for a drain; a released job goes straight back
-- arguments: for each take: its token, how many verdicts, their ids, their ids and claims in one text,
--            the verdicts line by line in one text, how many released jobs, their ids. No job twice, and
--            none that is not of the take.
-- answer: for each take 1 or 0 for each verdict and each released job: 0 when its claim was lost
local answers, ended = {}, 0

-- For each id 1 when the worker still has it.
local function kept_of(take, ids)
  local kept = {}
  for n, done in ipairs(gather('SMISMEMBER', DONE .. take, ids)) do kept[n] = 1 - done end
  return kept
end

local function told_by(take, worker, jobs, told, ...)
  call('XADD', REPORTS, '*', 'take', take, 'worker', worker, 'jobs', jobs, 'told', told, ...)
end

local function settle(take, worker, ids, jobs, told, whole)
  if whole then
    -- All of it at once, as most takes are.
    call('DEL', PARCEL .. take)
    call('SREM', RUNNING .. worker, take)
    told_by(take, worker, jobs, told)
    ended = ended + #ids
    return string.rep('1', #ids)
  end
  local kept, settled = kept_of(take, ids), 0
  for n = 1, #kept do settled = settled + kept[n] end
  local answer = table.concat(kept)
  if settled == #ids then
    told_by(take, worker, jobs, told)
  elseif settled > 0 then
    told_by(take, worker, jobs, told, 'kept', answer)
  end
  let_go(take, worker, ids)
  ended = ended + settled
  return answer
end

insist()
local asked = call('EXISTS', ASKED) == 1
local at = 1
while at <= #ARGV do
  local take, n = ARGV[at], tonumber(ARGV[at + 1])
  local first, after = at + 2, at + 2 + n
  local m = tonumber(ARGV[after + 2])
  at = after + 3 + m
  local worker = call('LINDEX', PARCEL .. take, 0)
  if worker and is_alive(worker) then
    if n > 0 then
      local ids = { unpack(ARGV, first, after - 1) }
      local whole = n == call('LLEN', PARCEL .. take) - 1 and call('EXISTS', DONE .. take) == 0
      answers[#answers + 1] = settle(take, worker, ids, ARGV[after], ARGV[after + 1], whole)
      if asked then spread('HDEL', ASKED, ids) end
    end
    if m > 0 then
      local ids, only = { unpack(ARGV, after + 3, after + 2 + m) }, {}
      local kept = kept_of(take, ids)
      for _, id in ipairs(ids) do only[id] = true end
      give_back(take, worker, only)
      answers[#answers + 1] = table.concat(kept)
    end
  else
    answers[#answers + 1] = string.rep('0', n + m)
  end
end
count('taken', -ended)
count('told', ended)
return table.concat(answers)
