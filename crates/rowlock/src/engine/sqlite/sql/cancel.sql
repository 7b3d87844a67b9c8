-- purpose: call off a job that nobody has claimed
-- moves: cancel pending -> cancelled
-- differs: the history's trigger takes the row out of rowlock_job
-- ?1 id ?2 now
INSERT INTO rowlock_history
    (id, kind, queue, priority, state, attempt, max_attempts, scheduled_at, created_at, started_at,
     finished_at, expires_at, unique_key, unique_until, tags, trace_context, backoff, errors, payload)
SELECT job.id, job.kind, job.queue, job.priority, 'cancelled', job.attempt, job.max_attempts,
       job.scheduled_at, job.created_at, job.started_at, ?2,
       ?2 + coalesce(k.keep_cancelled_ms, 604800000),
       job.unique_key, job.unique_until, job.tags, job.trace_context, job.backoff, job.errors, job.payload
FROM rowlock_job AS job LEFT JOIN rowlock_kind AS k ON k.kind = job.kind
WHERE job.id = ?1 AND job.state = 'pending'
