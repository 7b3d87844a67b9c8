-- purpose: live jobs by queue, counted as far as the limit, and ended ones from their counts, in one snapshot
-- $1 as many jobs of a queue are counted $2 as many rows of a lane are looked at where there are more $3 jobs that had
-- as many behind them in their lanes; a look walks indexes only (look.sql)
WITH clock AS MATERIALIZED (SELECT rowlock.now() AS now),
known AS MATERIALIZED (
    -- Claims take a lane's jobs in turn: while one waits, so do those behind it.
    SELECT j.id, j.queue, j.kind, j.priority FROM rowlock.job_0 AS j WHERE j.id = ANY ($3) AND j.token IS NULL
    UNION ALL
    SELECT j.id, j.queue, j.kind, j.priority FROM rowlock.job_1 AS j WHERE j.id = ANY ($3) AND j.token IS NULL
    UNION ALL
    SELECT j.id, j.queue, j.kind, j.priority FROM rowlock.job_2 AS j WHERE j.id = ANY ($3) AND j.token IS NULL
    UNION ALL
    SELECT j.id, j.queue, j.kind, j.priority FROM rowlock.job_3 AS j WHERE j.id = ANY ($3) AND j.token IS NULL
), lanes AS MATERIALIZED (
    SELECT l.queue, l.kind, l.priority,
           rowlock.is_on(k.switch, k.switch_until, clock.now, 'hold')
           OR rowlock.is_on(q.switch, q.switch_until, clock.now, 'hold') AS stopped,
           -- From the end that claims come to last.
           coalesce(
               (SELECT known.id FROM known WHERE known.queue = l.queue AND known.kind = l.kind AND known.priority = l.priority LIMIT 1),
               (SELECT j.id FROM rowlock.job_0 AS j WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority
                AND j.token IS NULL ORDER BY j.ready_at DESC, j.id DESC OFFSET $1 - 1 LIMIT 1),
               (SELECT j.id FROM rowlock.job_1 AS j WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority
                AND j.token IS NULL ORDER BY j.ready_at DESC, j.id DESC OFFSET $1 - 1 LIMIT 1),
               (SELECT j.id FROM rowlock.job_2 AS j WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority
                AND j.token IS NULL ORDER BY j.ready_at DESC, j.id DESC OFFSET $1 - 1 LIMIT 1),
               (SELECT j.id FROM rowlock.job_3 AS j WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority
                AND j.token IS NULL ORDER BY j.ready_at DESC, j.id DESC OFFSET $1 - 1 LIMIT 1)) AS deep
    FROM clock CROSS JOIN (SELECT DISTINCT queue, kind, priority FROM rowlock.lane) AS l
    LEFT JOIN rowlock.kind AS k ON k.kind = l.kind
    LEFT JOIN rowlock.queue AS q ON q.queue = l.queue
), queues AS MATERIALIZED (
    SELECT lane.queue, count(lane.deep) > 0 AS deep, count(lane.deep) FILTER (WHERE lane.stopped) > 0 AS deep_and_stopped,
           CASE WHEN count(lane.deep) > 0 THEN $2 ELSE $1 END AS look
    FROM lanes AS lane GROUP BY lane.queue
), apart AS MATERIALIZED (
    (SELECT 1 AS part, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect ORDER BY a.ready_at, a.id LIMIT $1)
    UNION ALL
    (SELECT 2, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.token IS NULL AND a.suspect ORDER BY a.priority DESC, a.ready_at, a.id LIMIT $1)
    UNION ALL
    (SELECT 3, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.held AND a.token IS NULL AND NOT a.suspect LIMIT $1)
    UNION ALL
    (SELECT 4, a.queue, a.kind, a.token, a.scheduled_at, a.attempt FROM rowlock.aside AS a
     WHERE a.worker IS NOT NULL LIMIT $1)
), counted AS (
    SELECT q.queue, CASE WHEN q.deep THEN $1 ELSE seen.pending END AS pending, seen.scheduled, seen.retrying,
           CASE WHEN q.deep_and_stopped THEN $1 ELSE seen.held END AS held, seen.processing, q.deep OR seen.n >= $1 AS cut,
           first.oldest
    FROM clock CROSS JOIN queues AS q CROSS JOIN LATERAL (
        SELECT count(*) AS n, count(*) - count(job.token) AS pending,
               count(*) FILTER (WHERE job.scheduled_at > clock.now AND job.token IS NULL) AS scheduled,
               count(*) FILTER (WHERE job.attempt > 0 AND job.token IS NULL) AS retrying,
               count(*) FILTER (WHERE job.stopped AND job.token IS NULL) AS held,
               count(job.token) AS processing
        FROM (SELECT lane.stopped, each.* FROM lanes AS lane CROSS JOIN LATERAL (
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_0 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT q.look)
            UNION ALL
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_1 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT q.look)
            UNION ALL
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_2 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT q.look)
            UNION ALL
            (SELECT j.token, j.scheduled_at, j.attempt FROM rowlock.job_3 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT q.look)) AS each
            WHERE lane.queue = q.queue LIMIT $1) AS job) AS seen
    CROSS JOIN LATERAL (
        SELECT min(head.scheduled_at) AS oldest FROM lanes AS lane CROSS JOIN LATERAL (
            (SELECT j.scheduled_at FROM rowlock.job_0 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
               AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)
            UNION ALL
            (SELECT j.scheduled_at FROM rowlock.job_1 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
               AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)
            UNION ALL
            (SELECT j.scheduled_at FROM rowlock.job_2 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
               AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)
            UNION ALL
            (SELECT j.scheduled_at FROM rowlock.job_3 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
               AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT 1)) AS head
        WHERE lane.queue = q.queue AND head.scheduled_at <= clock.now) AS first
    UNION ALL
    SELECT apart.queue, count(*) FILTER (WHERE apart.token IS NULL),
           count(*) FILTER (WHERE apart.token IS NULL AND apart.scheduled_at > clock.now),
           count(*) FILTER (WHERE apart.token IS NULL AND apart.attempt > 0),
           count(*) FILTER (WHERE apart.token IS NULL AND (rowlock.is_on(k.switch, k.switch_until, clock.now, 'hold')
               OR rowlock.is_on(q.switch, q.switch_until, clock.now, 'hold'))),
           count(*) FILTER (WHERE apart.token IS NOT NULL),
           false,
           min(apart.scheduled_at) FILTER (WHERE apart.token IS NULL AND apart.scheduled_at <= clock.now)
    FROM clock CROSS JOIN apart
    LEFT JOIN rowlock.kind AS k ON k.kind = apart.kind
    LEFT JOIN rowlock.queue AS q ON q.queue = apart.queue
    GROUP BY apart.queue
)
SELECT c.queue, NULL AS state, sum(c.pending)::bigint, sum(c.scheduled)::bigint, sum(c.retrying)::bigint, sum(c.held)::bigint,
       sum(c.processing)::bigint, extract(epoch FROM (SELECT now FROM clock) - min(c.oldest))::float8,
       -- Whoever was beyond the limit could be any queue's.
       bool_or(c.cut) OR EXISTS (SELECT 1 FROM apart GROUP BY apart.part HAVING count(*) >= $1),
       ARRAY (SELECT lane.deep FROM lanes AS lane WHERE lane.queue = c.queue AND lane.deep IS NOT NULL)
FROM counted AS c GROUP BY c.queue
UNION ALL
SELECT queue, state, sum(n)::bigint, 0, 0, 0, 0, NULL, false, '{}' FROM rowlock.tally GROUP BY queue, state
