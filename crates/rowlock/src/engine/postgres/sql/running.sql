-- purpose: jobs in somebody's hands, the one that began first on top; $1 limit
SELECT job.id, job.kind, job.queue, job.priority, job.payload::text, 'processing', job.attempt, job.max_attempts,
       job.scheduled_at, job.created_at, job.started_at, NULL::timestamptz, job.unique_key, job.tags,
       job.trace_context, job.errors::text,
       CASE WHEN job.worker IS NOT NULL THEN coalesce(w.id, 'worker ' || job.worker) END
FROM rowlock.job LEFT JOIN rowlock.worker AS w ON w.number = job.worker
WHERE job.token IS NOT NULL
ORDER BY job.started_at, job.id LIMIT $1
