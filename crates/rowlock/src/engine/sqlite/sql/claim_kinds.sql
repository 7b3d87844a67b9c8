-- purpose: the next kind with pending jobs in queue ?1 after ?2
SELECT kind FROM rowlock_job INDEXED BY rowlock_job_ready
WHERE state = 'pending' AND queue = ?1 AND kind > ?2
ORDER BY kind LIMIT 1
