-- purpose: what worker ?1 holds that somebody wants cancelled, or that a switch has stopped at ?2
SELECT job.id, job.cancel_requested, job.token
FROM rowlock_job AS job
LEFT JOIN rowlock_kind AS k ON k.kind = job.kind
LEFT JOIN rowlock_queue AS q ON q.queue = job.queue
WHERE job.state = 'processing' AND job.locked_by = ?1
  AND (job.cancel_requested
    OR coalesce(k.switch IN ('hold', 'pause') AND coalesce(k.switch_until > ?2, 1), 0)
    OR coalesce(q.switch IN ('hold', 'pause') AND coalesce(q.switch_until > ?2, 1), 0))
