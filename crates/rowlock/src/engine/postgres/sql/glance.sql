-- purpose: live jobs by queue, counted as far as the limit, and ended ones from their counts, in one snapshot
-- $1 now $2 as many rows of a lane are looked at; a look walks indexes only (look.sql)
WITH lanes AS MATERIALIZED (
    SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l
), apart AS MATERIALIZED (
    (SELECT 1 AS part, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect ORDER BY a.ready_at, a.id LIMIT $2)
    UNION ALL
    (SELECT 2, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.token IS NULL AND a.suspect ORDER BY a.priority DESC, a.ready_at, a.id LIMIT $2)
    UNION ALL
    (SELECT 3, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.held AND a.token IS NULL AND NOT a.suspect LIMIT $2)
    UNION ALL
    (SELECT 4, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.worker IS NOT NULL LIMIT $2)
), counted AS (
    SELECT lane.queue, lane.kind, seen.*,
           (SELECT min(head.scheduled_at) FROM (
               (SELECT j.scheduled_at FROM rowlock.job_0 AS j
                WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
                AND j.ready_at <= $1 AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)
               UNION ALL
               (SELECT j.scheduled_at FROM rowlock.job_1 AS j
                WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
                AND j.ready_at <= $1 AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)
               UNION ALL
               (SELECT j.scheduled_at FROM rowlock.job_2 AS j
                WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
                AND j.ready_at <= $1 AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)
               UNION ALL
               (SELECT j.scheduled_at FROM rowlock.job_3 AS j
                WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
                AND j.ready_at <= $1 AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)) AS head
            WHERE head.scheduled_at <= $1) AS oldest
    FROM lanes AS lane CROSS JOIN LATERAL (
        SELECT count(*) - count(job.token) AS pending,
               count(*) FILTER (WHERE job.scheduled_at > $1 AND job.token IS NULL) AS scheduled,
               count(*) FILTER (WHERE job.attempt > 0 AND job.token IS NULL) AS retrying,
               count(job.token) AS processing,
               count(*) >= $2 AS cut
        FROM (SELECT * FROM (
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_0 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority)
            UNION ALL
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_1 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority)
            UNION ALL
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_2 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority)
            UNION ALL
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_3 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority)) AS each LIMIT $2) AS job) AS seen
    UNION ALL
    SELECT apart.queue, apart.kind, count(*) FILTER (WHERE apart.token IS NULL),
           count(*) FILTER (WHERE apart.token IS NULL AND apart.scheduled_at > $1),
           count(*) FILTER (WHERE apart.token IS NULL AND apart.attempt > 0),
           count(*) FILTER (WHERE apart.token IS NOT NULL),
           false,
           min(apart.scheduled_at) FILTER (WHERE apart.token IS NULL AND apart.scheduled_at <= $1)
    FROM apart GROUP BY apart.queue, apart.kind
)
SELECT c.queue, NULL AS state, sum(c.pending)::bigint, sum(c.scheduled)::bigint, sum(c.retrying)::bigint,
       (sum(c.pending) FILTER (WHERE rowlock.is_on(k.switch, k.switch_until, $1, 'hold')
           OR rowlock.is_on(q.switch, q.switch_until, $1, 'hold')))::bigint,
       sum(c.processing)::bigint, extract(epoch FROM $1 - min(c.oldest))::float8,
       -- Whoever was beyond the limit could be any queue's.
       bool_or(c.cut) OR EXISTS (SELECT 1 FROM apart GROUP BY apart.part HAVING count(*) >= $2)
FROM counted AS c
LEFT JOIN rowlock.kind AS k ON k.kind = c.kind
LEFT JOIN rowlock.queue AS q ON q.queue = c.queue
GROUP BY c.queue
UNION ALL
SELECT queue, state, sum(n)::bigint, 0, 0, 0, 0, NULL, false FROM rowlock.tally GROUP BY queue, state
