-- purpose: workers, when each was heard last, and how much it holds
SELECT id, lease_ms, joined_at,
       (SELECT count(*) FROM rowlock_job WHERE state = 'processing' AND locked_by = rowlock_worker.id),
       seen_at
FROM rowlock_worker ORDER BY joined_at, id
