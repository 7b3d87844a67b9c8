-- purpose: one job with all its fields
SELECT id, kind, queue, priority, payload::text, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, finished_at, unique_key, tags, trace_context, errors::text, locked_by
FROM (
    SELECT job.id, job.kind, job.queue, job.priority, job.payload,
           CASE WHEN job.token IS NULL THEN 'pending' ELSE 'processing' END AS state,
           job.attempt, job.max_attempts, job.scheduled_at, job.created_at, job.started_at,
           NULL::timestamptz AS finished_at, job.unique_key, job.tags, job.trace_context, job.errors,
           CASE WHEN job.worker IS NOT NULL THEN coalesce(w.id, 'worker ' || job.worker) END AS locked_by
    FROM rowlock.job LEFT JOIN rowlock.worker AS w ON w.number = job.worker WHERE job.id = $1
    UNION ALL
    SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
           started_at, finished_at, unique_key, tags, trace_context, errors, NULL
    FROM rowlock.history WHERE id = $1) AS found
LIMIT 1
