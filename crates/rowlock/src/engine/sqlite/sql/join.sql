-- purpose: a worker's lease begins
INSERT INTO rowlock_worker (id, lease_ms, joined_at, seen_at) VALUES (?1, ?2, ?3, ?3)
