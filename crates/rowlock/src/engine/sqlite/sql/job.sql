-- purpose: one job with all its fields
SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, finished_at, unique_key, tags, trace_context, errors, locked_by
FROM rowlock_jobs WHERE id = ?1
