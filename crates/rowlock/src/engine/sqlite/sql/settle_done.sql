-- purpose: claimed jobs whose work is done end and are kept in the history, many at once
-- moves: settle_done processing -> completed
-- moves: settle_not_needed processing -> completed
-- differs: the history's trigger takes the rows out of rowlock_job
-- ?1 [[id, token, started_at or null], ...], each id once ?2 now
INSERT INTO main.rowlock_history
    (id, kind, queue, priority, state, attempt, max_attempts, scheduled_at, created_at, started_at,
     finished_at, expires_at, unique_key, unique_until, tags, trace_context, backoff, errors, payload)
SELECT job.id, job.kind, job.queue, job.priority, 'completed', job.attempt, job.max_attempts,
       job.scheduled_at, job.created_at, coalesce(done.value ->> 2, job.started_at),
       ?2, ?2 + coalesce(k.keep_completed_ms, 86400000),
       job.unique_key, job.unique_until, job.tags, job.trace_context, job.backoff, job.errors,
       job.payload
FROM json_each(?1) AS done
CROSS JOIN main.rowlock_job AS job ON job.id = done.value ->> 0
LEFT JOIN main.rowlock_kind AS k ON k.kind = job.kind
WHERE job.token = done.value ->> 1 AND job.state = 'processing'
  AND coalesce(k.keep_completed_ms, 86400000) > 0
RETURNING id
