-- purpose: pending jobs of a lane, counted as far as a limit
-- ?1 queue ?2 kind ?3 suspect ?4 priority ?5 now ?6 limit
SELECT count(*), sum(scheduled_at > ?5), sum(attempt > 0) FROM (
    SELECT scheduled_at, attempt FROM rowlock_job INDEXED BY rowlock_job_ready
    WHERE state = 'pending' AND queue = ?1 AND kind = ?2 AND suspect = ?3 AND priority = ?4
    LIMIT ?6)
