-- purpose: pending jobs of kinds that have no row, counted at the ends of their lanes and at the head of what is set aside
-- $1 as many rows of a lane, or of what is set aside, are looked at (look.sql)
WITH strange AS MATERIALIZED (
    SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l
    WHERE NOT EXISTS (SELECT 1 FROM rowlock.kind AS k WHERE k.kind = l.kind)
), apart AS MATERIALIZED (
    (SELECT 1 AS part, a.kind FROM rowlock.aside AS a
     WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect ORDER BY a.ready_at, a.id LIMIT $1)
    UNION ALL
    (SELECT 2, a.kind FROM rowlock.aside AS a
     WHERE a.token IS NULL AND a.suspect ORDER BY a.priority DESC, a.ready_at, a.id LIMIT $1)
    UNION ALL
    (SELECT 3, a.kind FROM rowlock.aside AS a WHERE a.held AND a.token IS NULL AND NOT a.suspect LIMIT $1)
), seen AS (
    SELECT lane.kind, tail.pending, tail.cut FROM strange AS lane CROSS JOIN LATERAL (
        -- Claims take from the other end: what waits is here.
        SELECT count(*) FILTER (WHERE j.token IS NULL) AS pending, count(*) >= $1 AS cut
        FROM (SELECT j.token FROM rowlock.job_0 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at DESC, j.id DESC LIMIT $1) AS j
        UNION ALL
        SELECT count(*) FILTER (WHERE j.token IS NULL), count(*) >= $1
        FROM (SELECT j.token FROM rowlock.job_1 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at DESC, j.id DESC LIMIT $1) AS j
        UNION ALL
        SELECT count(*) FILTER (WHERE j.token IS NULL), count(*) >= $1
        FROM (SELECT j.token FROM rowlock.job_2 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at DESC, j.id DESC LIMIT $1) AS j
        UNION ALL
        SELECT count(*) FILTER (WHERE j.token IS NULL), count(*) >= $1
        FROM (SELECT j.token FROM rowlock.job_3 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at DESC, j.id DESC LIMIT $1) AS j) AS tail
    UNION ALL
    SELECT apart.kind, count(*), false FROM apart
    WHERE NOT EXISTS (SELECT 1 FROM rowlock.kind AS k WHERE k.kind = apart.kind) GROUP BY apart.kind
), cut AS (
    -- Whoever was beyond the limit could be any kind's.
    SELECT EXISTS (SELECT 1 FROM apart GROUP BY apart.part HAVING count(*) >= $1) AS apart
)
SELECT seen.kind, sum(seen.pending)::bigint, bool_or(seen.cut) OR cut.apart
FROM seen CROSS JOIN cut GROUP BY seen.kind, cut.apart HAVING sum(seen.pending) > 0
UNION ALL
-- Or of a kind that was not seen at all: a row without a kind says that there may be some.
SELECT NULL, 0, true FROM cut WHERE cut.apart
ORDER BY 1
