-- purpose: the next queue with pending jobs after ?1
SELECT queue FROM rowlock_job INDEXED BY rowlock_job_ready
WHERE state = 'pending' AND queue > ?1
ORDER BY queue LIMIT 1
