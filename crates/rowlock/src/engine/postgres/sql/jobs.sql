-- purpose: jobs by filter, by rising id
-- $1 state $2 queue $3 kind $4 key $5 tag $6 since $7 until $8 after $9 limit
-- differs: not through the view, so that the payload comes as it was written
SELECT id, kind, queue, priority, payload::text, state, attempt, max_attempts, scheduled_at, created_at,
       started_at, finished_at, unique_key, tags, trace_context, errors::text, locked_by
FROM (
    (SELECT job.id, job.kind, job.queue, job.priority, job.payload,
            CASE WHEN job.token IS NULL THEN 'pending' ELSE 'processing' END AS state,
            job.attempt, job.max_attempts, job.scheduled_at, job.created_at, job.started_at,
            NULL::timestamptz AS finished_at, job.unique_key, job.tags, job.trace_context, job.errors,
            CASE WHEN job.worker IS NOT NULL THEN coalesce(w.id, 'worker ' || job.worker) END AS locked_by
     FROM rowlock.job LEFT JOIN rowlock.worker AS w ON w.number = job.worker
     WHERE job.id > $8
       AND ($1::text IS NULL OR $1 = CASE WHEN job.token IS NULL THEN 'pending' ELSE 'processing' END)
       AND ($2::text IS NULL OR job.queue = $2) AND ($3::text IS NULL OR job.kind = $3)
       AND ($4::text IS NULL OR job.unique_key = $4) AND ($5::text IS NULL OR $5 = ANY (job.tags))
       AND ($6::timestamptz IS NULL OR job.created_at >= $6) AND ($7::timestamptz IS NULL OR job.created_at < $7)
     ORDER BY job.id LIMIT $9)
    UNION ALL
    (SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
            started_at, finished_at, unique_key, tags, trace_context, errors, NULL
     FROM rowlock.history
     WHERE id > $8
       AND ($1::text IS NULL OR $1 = state)
       AND ($2::text IS NULL OR queue = $2) AND ($3::text IS NULL OR kind = $3)
       AND ($4::text IS NULL OR unique_key = $4) AND ($5::text IS NULL OR $5 = ANY (tags))
       AND ($6::timestamptz IS NULL OR created_at >= $6) AND ($7::timestamptz IS NULL OR created_at < $7)
     ORDER BY id LIMIT $9)) AS found
ORDER BY id LIMIT $9
