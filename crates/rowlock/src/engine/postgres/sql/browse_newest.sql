-- purpose: jobs by filter, by falling id, among the next rows only
-- $1 state $2 queue $3 kind $4 key $5 tag $6 since $7 until $8 before $9 limit $10 rows to look at $11 bytes of payloads
-- differs: not through the view, so that the payload comes as it was written
WITH seen AS MATERIALIZED (
    SELECT * FROM (
        (SELECT job.id, job.kind, job.queue, job.priority, job.payload,
            CASE WHEN job.token IS NULL THEN 'pending' ELSE 'processing' END AS state,
            job.attempt, job.max_attempts, job.scheduled_at, job.created_at, job.started_at,
            NULL::timestamptz AS finished_at, job.unique_key, job.tags, job.trace_context, job.errors,
            job.worker
         FROM rowlock.job
         WHERE job.id < $8 AND ($1::text IS NULL OR $1 IN ('pending', 'processing'))
         ORDER BY job.id DESC LIMIT $10)
        UNION ALL
        (SELECT id, kind, queue, priority, payload, state, attempt, max_attempts, scheduled_at, created_at,
                started_at, finished_at, unique_key, tags, trace_context, errors, NULL
         FROM rowlock.history
         WHERE id < $8 AND ($1::text IS NULL OR $1 NOT IN ('pending', 'processing'))
         ORDER BY id DESC LIMIT $10)) AS next
    ORDER BY id DESC LIMIT $10
)
SELECT found.id, found.kind, found.queue, found.priority, found.payload::text, found.state, found.attempt,
       found.max_attempts, found.scheduled_at, found.created_at, found.started_at, found.finished_at,
       found.unique_key, found.tags, found.trace_context, found.errors::text,
       CASE WHEN found.worker IS NOT NULL THEN coalesce(w.id, 'worker ' || found.worker) END,
       look.last, look.n, found.matches
FROM (SELECT min(id) AS last, count(*) AS n FROM seen) AS look
LEFT JOIN LATERAL (
    -- Whoever asks keeps the whole page in memory. The first job comes however large it is.
    SELECT * FROM (
        SELECT next.*, count(*) OVER () AS matches,
               sum(octet_length(next.payload::text)) OVER (ORDER BY next.id DESC) - octet_length(next.payload::text) AS before
        FROM (
            SELECT * FROM seen
            WHERE ($1::text IS NULL OR seen.state = $1)
              AND ($2::text IS NULL OR seen.queue = $2) AND ($3::text IS NULL OR seen.kind = $3)
              AND ($4::text IS NULL OR seen.unique_key = $4) AND ($5::text IS NULL OR $5 = ANY (seen.tags))
              AND ($6::timestamptz IS NULL OR seen.created_at >= $6) AND ($7::timestamptz IS NULL OR seen.created_at < $7)
            ORDER BY seen.id DESC LIMIT $9) AS next) AS next
    WHERE next.before < $11) AS found ON true
LEFT JOIN rowlock.worker AS w ON w.number = found.worker
ORDER BY found.id DESC
