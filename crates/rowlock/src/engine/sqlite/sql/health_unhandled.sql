-- purpose: known kinds whose jobs have been due for more than a minute at ?1 while none of them runs, though nothing stops them
-- differs: SQLite has no function for switches
SELECT job.kind, sum(job.scheduled_at <= ?1), ?1 - min(job.scheduled_at)
FROM rowlock_job AS job JOIN rowlock_kind AS k ON k.kind = job.kind LEFT JOIN rowlock_queue AS q ON q.queue = job.queue
WHERE k.route = 'direct' AND coalesce(q.route, 'direct') = 'direct'
  AND NOT (k.switch IS NOT NULL AND coalesce(k.switch_until > ?1, 1))
  AND NOT (q.switch IS NOT NULL AND coalesce(q.switch_until > ?1, 1))
GROUP BY job.kind
HAVING min(job.scheduled_at) < ?1 - 60000 AND sum(job.state = 'processing') = 0
ORDER BY job.kind
