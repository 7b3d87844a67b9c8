-- purpose: live jobs by queue at ?1
SELECT job.queue,
       sum(job.state = 'pending'),
       sum(job.state = 'pending' AND job.scheduled_at > ?1),
       sum(job.state = 'pending' AND job.attempt > 0),
       sum(job.state = 'pending' AND (
           coalesce(k.switch = 'hold' AND coalesce(k.switch_until > ?1, 1), 0)
        OR coalesce(q.switch = 'hold' AND coalesce(q.switch_until > ?1, 1), 0))),
       sum(job.state = 'processing'),
       min(CASE WHEN job.state = 'pending' AND job.scheduled_at <= ?1 THEN job.scheduled_at END)
FROM rowlock_job AS job
LEFT JOIN rowlock_kind AS k ON k.kind = job.kind
LEFT JOIN rowlock_queue AS q ON q.queue = job.queue
GROUP BY job.queue
