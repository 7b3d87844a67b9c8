-- purpose: the heartbeat counters, read with the write lock held
-- A route is never given up: what it holds is in the hands of others.
SELECT id, beat, lease_ms, seen_at, suspect_id, suspect_token FROM rowlock_worker
WHERE id NOT GLOB 'drain:*'
