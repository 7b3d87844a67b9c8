-- purpose: workers, when each was heard last, and how much it holds at the heads of lanes and aside, and whether it may hold more
-- $1 as many rows of a lane are looked at
WITH held AS MATERIALIZED (
    SELECT lane.at, head.segment, head.worker FROM (
        SELECT row_number() OVER () AS at, l.* FROM (
            SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l) AS l) AS lane
    CROSS JOIN LATERAL (
        (SELECT 0 AS segment, j.worker FROM rowlock.job_0 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT $1)
        UNION ALL
        (SELECT 1, j.worker FROM rowlock.job_1 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT $1)
        UNION ALL
        (SELECT 2, j.worker FROM rowlock.job_2 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT $1)
        UNION ALL
        (SELECT 3, j.worker FROM rowlock.job_3 AS j
         WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT $1)) AS head
    WHERE head.worker IS NOT NULL
), apart AS MATERIALIZED (
    -- Routes, whose numbers are below nought, may have sent so many that no worker would be seen.
    (SELECT a.worker FROM rowlock.aside AS a WHERE a.worker > 0 LIMIT $1 * 10)
    UNION ALL
    (SELECT a.worker FROM rowlock.aside AS a WHERE a.worker < 0 LIMIT $1 * 10)
)
SELECT w.id, w.lease_ms, w.joined_at, coalesce(sum.n, 0)::bigint, w.seen_at,
       -- Claims take in turn: behind a head of which all is taken there may be more of anybody's.
       EXISTS (SELECT 1 FROM held GROUP BY held.at, held.segment HAVING count(*) >= $1)
       OR (SELECT count(*) FROM apart WHERE (apart.worker > 0) = (w.number > 0)) >= $1 * 10
FROM rowlock.worker AS w
LEFT JOIN (SELECT all_of_them.worker, count(*) AS n
           FROM (SELECT held.worker FROM held UNION ALL SELECT apart.worker FROM apart) AS all_of_them
           GROUP BY all_of_them.worker) AS sum ON sum.worker = w.number
ORDER BY w.joined_at, w.id
