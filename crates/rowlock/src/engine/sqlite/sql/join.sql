-- purpose: a worker's lease begins
-- A join whose answer was lost may be tried again.
INSERT INTO rowlock_worker (id, lease_ms, joined_at, seen_at) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
