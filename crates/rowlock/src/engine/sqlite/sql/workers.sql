-- purpose: workers, when each was heard last, and how much it holds, counted up to ?1
SELECT id, lease_ms, joined_at,
       (SELECT count(*) FROM (
            SELECT 1 FROM rowlock_job WHERE state = 'processing' AND locked_by = rowlock_worker.id LIMIT ?1)),
       seen_at
FROM rowlock_worker ORDER BY joined_at, id
