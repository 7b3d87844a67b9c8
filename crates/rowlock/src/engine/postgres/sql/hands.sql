-- purpose: workers, when each was heard last, and how much it holds at the heads of lanes and aside
-- $1 as many rows of a lane are looked at
SELECT w.id, w.lease_ms, w.joined_at, coalesce(held.n, 0), w.seen_at
FROM rowlock.worker AS w
LEFT JOIN (
    SELECT job.worker, count(*) AS n FROM (
        SELECT head.worker FROM (SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l) AS lane
        CROSS JOIN LATERAL (
            (SELECT j.worker FROM rowlock.job_0 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)
            UNION ALL
            (SELECT j.worker FROM rowlock.job_1 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)
            UNION ALL
            (SELECT j.worker FROM rowlock.job_2 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)
            UNION ALL
            (SELECT j.worker FROM rowlock.job_3 AS j
             WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
             ORDER BY j.ready_at, j.id LIMIT $1)) AS head
        WHERE head.worker IS NOT NULL
        UNION ALL
        (SELECT a.worker FROM rowlock.aside AS a WHERE a.worker IS NOT NULL LIMIT $1 * 10)) AS job
    GROUP BY job.worker) AS held ON held.worker = w.number
ORDER BY w.joined_at, w.id
