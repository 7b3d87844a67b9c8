-- purpose: workers, and how much each holds
SELECT id, lease_ms, joined_at,
       (SELECT count(*) FROM rowlock_job WHERE state = 'processing' AND locked_by = rowlock_worker.id)
FROM rowlock_worker ORDER BY joined_at, id
