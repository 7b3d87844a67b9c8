-- purpose: jobs arrive, unless it is too late for them or the place is another store's
-- arguments: deadline in ms, store, then for each job: id, "TOKEN DUE LANE ATTEMPT KEY", body
local time = call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[1]) then return { 'late' } end
local owner = call('GET', P .. ':owner')
if owner ~= ARGV[2] then return { 'owner', owner or '' } end

local ids = {}
for at = 3, #ARGV, 3 do ids[#ids + 1] = ARGV[at] end
local before = gather(HELD, ids)
local held, bodies, lanes, replaced = {}, {}, {}, { ready = 0, taken = 0, told = 0 }
for n = 1, #ids do
  local rest, old = ARGV[3 * n + 1], before[n]
  local token, due, lane = match(rest, '^(%S+) (%S+) (%S+)')
  -- A push that is made again changes nothing about what has arrived.
  if not old or sent_under(old) ~= token then
    if old then
      local was = COUNTED[sub(old, 1, 1)]
      replaced[was] = replaced[was] + 1
    end
    local at = #held
    held[at + 1], held[at + 2] = ids[n], 'r ' .. rest
    bodies[at + 1], bodies[at + 2] = ids[n], ARGV[3 * n + 2]
    local entries = lanes[lane]
    if not entries then
      entries = {}
      lanes[lane] = entries
    end
    entries[#entries + 1] = ids[n] .. ' ' .. token .. ' ' .. due
  end
end
if #held > 0 then
  spread('HSET', HELD, held)
  spread('HSET', BODY, bodies)
  for lane, entries in pairs(lanes) do
    spread('RPUSH', READY .. lane, entries)
    call('SADD', LANES, lane)
  end
  count('ready', #held / 2 - replaced.ready)
  count('taken', -replaced.taken)
  count('told', -replaced.told)
  call('INCRBY', P .. ':pushed', #held / 2)
  call('PUBLISH', P .. ':bell', '')
end
-- What waits to be taken, and what waits to be fetched: both are in the way.
local tally = call('HMGET', TALLY, 'ready', 'told')
return { 'ok', tostring((tally[1] or 0) + (tally[2] or 0)) }
