-- purpose: jobs in somebody's hands, the one that began first on top; ?1 limit
SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, NULL, unique_key, tags, trace_context, errors, locked_by
FROM rowlock_job
WHERE state = 'processing'
ORDER BY started_at, id LIMIT ?1
