-- purpose: running jobs by queue, counted as far as limit ?1
SELECT queue, count(*) FROM (
    SELECT queue FROM rowlock_job INDEXED BY rowlock_job_running WHERE state = 'processing' LIMIT ?1)
GROUP BY queue
