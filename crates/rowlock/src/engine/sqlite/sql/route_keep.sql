-- purpose: a drain of this route lives; its row is written if there is none
-- ?1 holder ?2 lease ?3 now
INSERT INTO rowlock_worker (id, lease_ms, joined_at, seen_at) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (id) DO UPDATE SET beat = beat + 1, lease_ms = excluded.lease_ms, seen_at = excluded.seen_at
