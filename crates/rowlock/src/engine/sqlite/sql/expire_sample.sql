-- purpose: the heartbeat counters, read with the write lock held
SELECT id, beat, lease_ms, seen_at, suspect_id, suspect_token FROM rowlock_worker
