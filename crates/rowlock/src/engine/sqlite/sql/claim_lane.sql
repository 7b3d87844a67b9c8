-- purpose: the best lane of a queue and kind below a priority, and when its first job is due
-- ?1 queue ?2 kind ?3 suspect ?4 priority
SELECT priority, scheduled_at FROM rowlock_job INDEXED BY rowlock_job_ready
WHERE state = 'pending' AND queue = ?1 AND kind = ?2 AND suspect = ?3 AND priority < ?4
ORDER BY priority DESC, scheduled_at, id LIMIT 1
