-- purpose: jobs in somebody's hands, the one that began first on top; claims take from the heads of lanes
-- $1 as many rows of a lane are looked at $2 limit $3 bytes of payloads
SELECT job.id, job.kind, job.queue, job.priority, job.payload::text, 'processing', job.attempt, job.max_attempts,
       job.scheduled_at, job.created_at, job.started_at, NULL::timestamptz, job.unique_key, job.tags,
       job.trace_context, job.errors::text,
       CASE WHEN job.worker IS NOT NULL THEN coalesce(w.id, 'worker ' || job.worker) END
FROM (
    SELECT first.*, sum(octet_length(first.payload::text)) OVER (ORDER BY first.started_at, first.id)
                    - octet_length(first.payload::text) AS before
    FROM (SELECT * FROM (
        SELECT head.* FROM (SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l) AS lane
        CROSS JOIN LATERAL (
            (SELECT j.id, j.kind, j.queue, j.priority, j.payload, j.attempt, j.max_attempts, j.scheduled_at, j.created_at, j.started_at,
                 j.unique_key, j.tags, j.trace_context, j.errors, j.worker, j.token FROM rowlock.job_0 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)
            UNION ALL
            (SELECT j.id, j.kind, j.queue, j.priority, j.payload, j.attempt, j.max_attempts, j.scheduled_at, j.created_at, j.started_at,
                 j.unique_key, j.tags, j.trace_context, j.errors, j.worker, j.token FROM rowlock.job_1 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)
            UNION ALL
            (SELECT j.id, j.kind, j.queue, j.priority, j.payload, j.attempt, j.max_attempts, j.scheduled_at, j.created_at, j.started_at,
                 j.unique_key, j.tags, j.trace_context, j.errors, j.worker, j.token FROM rowlock.job_2 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)
            UNION ALL
            (SELECT j.id, j.kind, j.queue, j.priority, j.payload, j.attempt, j.max_attempts, j.scheduled_at, j.created_at, j.started_at,
                 j.unique_key, j.tags, j.trace_context, j.errors, j.worker, j.token FROM rowlock.job_3 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)) AS head
        WHERE head.token IS NOT NULL
        UNION ALL
        (SELECT a.id, a.kind, a.queue, a.priority, a.payload, a.attempt, a.max_attempts, a.scheduled_at, a.created_at, a.started_at,
                 a.unique_key, a.tags, a.trace_context, a.errors, a.worker, a.token
         FROM rowlock.aside AS a WHERE a.worker IS NOT NULL LIMIT $1 * 10)) AS all_of_them ORDER BY started_at, id LIMIT $2) AS first) AS job
LEFT JOIN rowlock.worker AS w ON w.number = job.worker
WHERE job.before < $3
ORDER BY job.started_at, job.id
