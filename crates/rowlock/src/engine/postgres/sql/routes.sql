-- purpose: every route that something goes by or that holds jobs, and how it is doing
-- $1 as far as jobs are counted: what was sent is at the heads of lanes, or aside once its segment is closed
WITH clock AS MATERIALIZED (SELECT rowlock.now() AS now),
named AS (
    SELECT k.route, k.kind, NULL AS queue FROM rowlock.kind AS k WHERE k.route <> 'direct'
    UNION ALL
    SELECT q.route, NULL, q.queue FROM rowlock.queue AS q WHERE q.route <> 'direct'
), holders AS MATERIALIZED (
    SELECT substr(w.id, 7) AS route, w.number, w.seen_at, w.lease_ms FROM rowlock.worker AS w WHERE w.id LIKE 'drain:%'
), lanes AS MATERIALIZED (
    SELECT l.queue, l.kind, l.priority,
           -- Elsewhere only what was sent before its kind or queue went by another route: a head tells whether there is any.
           CASE WHEN l.kind IN (SELECT kind FROM named) OR l.queue IN (SELECT queue FROM named)
                  OR EXISTS (SELECT 1 FROM (
                      (SELECT j.worker FROM rowlock.job_0 AS j
                       WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority ORDER BY j.ready_at, j.id LIMIT $1 / 10)
                      UNION ALL
                      (SELECT j.worker FROM rowlock.job_1 AS j
                       WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority ORDER BY j.ready_at, j.id LIMIT $1 / 10)
                      UNION ALL
                      (SELECT j.worker FROM rowlock.job_2 AS j
                       WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority ORDER BY j.ready_at, j.id LIMIT $1 / 10)
                      UNION ALL
                      (SELECT j.worker FROM rowlock.job_3 AS j
                       WHERE j.queue = l.queue AND j.kind = l.kind AND j.priority = l.priority ORDER BY j.ready_at, j.id LIMIT $1 / 10)) AS top
                      WHERE top.worker < 0)
                THEN $1 ELSE 0 END AS look
    FROM (SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l) AS l
    -- Without a route nobody walks the segments.
    WHERE EXISTS (SELECT 1 FROM holders)
), young AS MATERIALIZED (
    SELECT head.worker FROM lanes AS lane
    CROSS JOIN LATERAL (
        (SELECT j.worker FROM rowlock.job_0 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT lane.look)
        UNION ALL
        (SELECT j.worker FROM rowlock.job_1 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT lane.look)
        UNION ALL
        (SELECT j.worker FROM rowlock.job_2 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT lane.look)
        UNION ALL
        (SELECT j.worker FROM rowlock.job_3 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT lane.look)) AS head
    WHERE head.worker IS NOT NULL
), sent AS (
    SELECT h.number AS worker, least(old.n + coalesce(young.n, 0), $1) AS n FROM holders AS h
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (SELECT 1 FROM rowlock.aside AS a WHERE a.worker = h.number LIMIT $1) AS a) AS old
    LEFT JOIN (SELECT young.worker, count(*) AS n FROM young GROUP BY young.worker) AS young ON young.worker = h.number
    WHERE old.n > 0 OR young.n > 0
), waiting AS (
    -- Each lane's oldest, wherever they are.
    SELECT lane.queue, lane.kind, count(*) AS n, min(job.scheduled_at) AS oldest
    FROM clock CROSS JOIN (
        SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l
        WHERE l.kind IN (SELECT kind FROM named) OR l.queue IN (SELECT queue FROM named)) AS lane
    CROSS JOIN LATERAL (
        (SELECT j.scheduled_at FROM rowlock.job_0 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
           AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT $1)
        UNION ALL
        (SELECT j.scheduled_at FROM rowlock.job_1 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
           AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT $1)
        UNION ALL
        (SELECT j.scheduled_at FROM rowlock.job_2 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
           AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT $1)
        UNION ALL
        (SELECT j.scheduled_at FROM rowlock.job_3 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
           AND j.ready_at <= clock.now AND j.token IS NULL ORDER BY j.ready_at, j.id LIMIT $1)) AS job
    GROUP BY lane.queue, lane.kind
    UNION ALL
    -- What has become due is aside until the next claim, suspects and held jobs for longer.
    SELECT aside.queue, aside.kind, count(*), min(aside.scheduled_at)
    FROM clock CROSS JOIN LATERAL (
        (SELECT a.queue, a.kind, a.scheduled_at FROM rowlock.aside AS a
         WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect AND a.ready_at <= clock.now ORDER BY a.ready_at, a.id LIMIT $1)
        UNION ALL
        (SELECT a.queue, a.kind, a.scheduled_at FROM rowlock.aside AS a
         WHERE a.token IS NULL AND a.suspect AND a.ready_at <= clock.now ORDER BY a.priority DESC, a.ready_at, a.id LIMIT $1)
        UNION ALL
        (SELECT a.queue, a.kind, a.scheduled_at FROM rowlock.aside AS a
         WHERE a.held AND a.token IS NULL AND NOT a.suspect AND a.ready_at <= clock.now LIMIT $1)) AS aside
    GROUP BY aside.queue, aside.kind
), unsent AS (
    SELECT coalesce(nullif(k.route, 'direct'), q.route) AS route, sum(w.n) AS n, min(w.oldest) AS oldest
    FROM waiting AS w LEFT JOIN rowlock.kind AS k ON k.kind = w.kind LEFT JOIN rowlock.queue AS q ON q.queue = w.queue
    GROUP BY 1
)
SELECT r.route,
       ARRAY (SELECT n.kind FROM named AS n WHERE n.route = r.route AND n.kind IS NOT NULL ORDER BY 1),
       ARRAY (SELECT n.queue FROM named AS n WHERE n.route = r.route AND n.queue IS NOT NULL ORDER BY 1),
       least(coalesce(u.n, 0), $1)::bigint, (extract(epoch FROM clock.now - u.oldest) * 1000)::bigint, coalesce(s.n, 0),
       h.seen_at, coalesce(h.seen_at + h.lease_ms * interval '1 ms' > clock.now, false)
FROM clock
CROSS JOIN (SELECT n.route FROM named AS n
            UNION SELECT h.route FROM holders AS h JOIN sent AS s ON s.worker = h.number) AS r
LEFT JOIN holders AS h ON h.route = r.route
LEFT JOIN sent AS s ON s.worker = h.number
LEFT JOIN unsent AS u ON u.route = r.route
ORDER BY r.route COLLATE "C"
