-- purpose: a claimed job ends and is kept in the history
-- moves: settle_done processing -> completed
-- moves: settle_not_needed processing -> completed
-- moves: settle_fail processing -> failed
-- moves: settle_cancelled processing -> cancelled
-- moves: expire processing -> failed
-- moves: expire processing -> cancelled
-- differs: the history's trigger takes the row out of rowlock_job
-- ?1 id ?2 token ?3 state ?4 now ?5 started_at ?6 error or NULL ?7 errors kept
INSERT INTO main.rowlock_history
    (id, kind, queue, priority, state, attempt, max_attempts, scheduled_at, created_at, started_at,
     finished_at, expires_at, unique_key, unique_until, tags, trace_context, backoff, errors, payload)
SELECT job.id, job.kind, job.queue, job.priority, ?3, job.attempt, job.max_attempts,
       job.scheduled_at, job.created_at, coalesce(?5, job.started_at), ?4, ?4 + job.keep,
       job.unique_key, job.unique_until, job.tags, job.trace_context, job.backoff,
       CASE WHEN ?6 IS NULL THEN job.errors
            WHEN json_array_length(job.errors) < ?7 THEN json_insert(job.errors, '$[#]', json(?6))
            ELSE json_insert(json_remove(job.errors, '$[0]'), '$[#]', json(?6)) END,
       job.payload
FROM (
    SELECT rowlock_job.*,
           CASE ?3 WHEN 'completed' THEN coalesce(k.keep_completed_ms, 86400000)
                   WHEN 'failed' THEN coalesce(k.keep_failed_ms, 2592000000)
                   ELSE coalesce(k.keep_cancelled_ms, 604800000) END AS keep
    FROM main.rowlock_job LEFT JOIN main.rowlock_kind AS k ON k.kind = rowlock_job.kind
    WHERE rowlock_job.id = ?1 AND rowlock_job.token = ?2 AND rowlock_job.state = 'processing') AS job
WHERE job.keep > 0
