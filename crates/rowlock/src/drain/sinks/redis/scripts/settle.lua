-- purpose: verdicts of workers wait for a drain; a released job goes straight back
-- arguments: for each job: id, the token it was taken under, its verdict as JSON or "release"
-- answer: for each job 1, or 0 when its claim was lost
local ids = {}
for n = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[n] end
local before = gather(HELD, ids)
local lives, left, answers, seen = {}, {}, {}, {}
local ended, held, told, back = {}, {}, {}, {}
for n = 1, #ids do
  local id, token, verdict = ids[n], ARGV[3 * n - 1], ARGV[3 * n]
  local take, worker, rest
  if before[n] then take, worker, rest = match(before[n], '^t (%S+) (%S+) (.*)$') end
  if take == token and not seen[id] then
    seen[id] = true
    if lives[worker] == nil then lives[worker] = call('EXISTS', ALIVE .. worker) == 1 end
    if lives[worker] then
      local taken = left[worker]
      if not taken then
        taken = {}
        left[worker] = taken
      end
      taken[take] = (taken[take] or 0) + 1
      if verdict == 'release' then
        back[#back + 1] = { id, take, rest, worker }
      else
        ended[#ended + 1] = id
        local at = #held
        held[at + 1], held[at + 2] = id, 'v ' .. match(rest, '^(%S+)')
        told[at + 1], told[at + 2] = id, verdict .. '\n' .. take .. ' ' .. worker .. ' ' .. rest
      end
      answers[n] = '1'
    end
  end
  answers[n] = answers[n] or '0'
end

-- First what frees memory: a full Redis is emptied by its workers.
spread('HDEL', BODY, ended)
if #ended > 0 then
  spread('HSET', HELD, held)
  report(told)
  if call('EXISTS', ASKED) == 1 then spread('HDEL', ASKED, ended) end
  count('taken', -#ended)
  count('told', #ended)
end
give_back(back)
for worker, takes in pairs(left) do
  for take, settled in pairs(takes) do
    if call('HINCRBY', RUNNING .. worker, 'left:' .. take, -settled) <= 0 then
      call('HDEL', RUNNING .. worker, 'left:' .. take, 'ids:' .. take)
    end
  end
end
return table.concat(answers)
