-- purpose: known kinds whose jobs have been due for more than a minute while none of them runs, though nothing stops them
-- $1 as many rows at the head of a lane, or of what is set aside, are looked at (look.sql): claims take from there
WITH clock AS MATERIALIZED (SELECT rowlock.now() AS now),
going AS MATERIALIZED (
    SELECT DISTINCT l.queue, l.kind, l.priority
    FROM clock CROSS JOIN rowlock.lane AS l JOIN rowlock.kind AS k ON k.kind = l.kind LEFT JOIN rowlock.queue AS q ON q.queue = l.queue
    WHERE k.route = 'direct' AND coalesce(q.route, 'direct') = 'direct'
      AND NOT rowlock.is_on(k.switch, k.switch_until, clock.now, 'reject', 'hold', 'pause')
      AND NOT rowlock.is_on(q.switch, q.switch_until, clock.now, 'reject', 'hold', 'pause')
), apart AS MATERIALIZED (
    SELECT a.* FROM clock CROSS JOIN LATERAL (
        (SELECT 1 AS part, a.queue, a.kind, a.token, a.scheduled_at FROM rowlock.aside AS a
         WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect AND a.ready_at <= clock.now ORDER BY a.ready_at, a.id LIMIT $1)
        UNION ALL
        (SELECT 2, a.queue, a.kind, a.token, a.scheduled_at FROM rowlock.aside AS a
         WHERE a.token IS NULL AND a.suspect AND NOT a.held ORDER BY a.priority DESC, a.ready_at, a.id LIMIT $1)
        UNION ALL
        -- Routes are below zero, and hold more than anybody runs.
        (SELECT 3, a.queue, a.kind, a.token, a.scheduled_at FROM rowlock.aside AS a
         WHERE a.worker > 0 ORDER BY a.worker LIMIT $1 * 10)) AS a
), seen AS (
    SELECT lane.kind, head.due, head.running, head.oldest, head.cut FROM clock CROSS JOIN going AS lane CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE j.scheduled_at <= clock.now) AS due, count(j.token) AS running,
               min(j.scheduled_at) AS oldest, count(*) >= $1 AS cut
        FROM (SELECT j.token, j.scheduled_at FROM rowlock.job_0 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at, j.id LIMIT $1) AS j
        UNION ALL
        SELECT count(*) FILTER (WHERE j.scheduled_at <= clock.now), count(j.token), min(j.scheduled_at), count(*) >= $1
        FROM (SELECT j.token, j.scheduled_at FROM rowlock.job_1 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at, j.id LIMIT $1) AS j
        UNION ALL
        SELECT count(*) FILTER (WHERE j.scheduled_at <= clock.now), count(j.token), min(j.scheduled_at), count(*) >= $1
        FROM (SELECT j.token, j.scheduled_at FROM rowlock.job_2 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at, j.id LIMIT $1) AS j
        UNION ALL
        SELECT count(*) FILTER (WHERE j.scheduled_at <= clock.now), count(j.token), min(j.scheduled_at), count(*) >= $1
        FROM (SELECT j.token, j.scheduled_at FROM rowlock.job_3 AS j
              WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
              ORDER BY j.ready_at, j.id LIMIT $1) AS j) AS head
    UNION ALL
    SELECT a.kind, count(*) FILTER (WHERE a.scheduled_at <= clock.now), count(a.token), min(a.scheduled_at), false
    FROM clock CROSS JOIN apart AS a JOIN rowlock.kind AS k ON k.kind = a.kind LEFT JOIN rowlock.queue AS q ON q.queue = a.queue
    WHERE k.route = 'direct' AND coalesce(q.route, 'direct') = 'direct'
      AND NOT rowlock.is_on(k.switch, k.switch_until, clock.now, 'reject', 'hold', 'pause')
      AND NOT rowlock.is_on(q.switch, q.switch_until, clock.now, 'reject', 'hold', 'pause')
    GROUP BY a.kind
)
SELECT seen.kind, sum(seen.due)::bigint, (extract(epoch FROM clock.now - min(seen.oldest)) * 1000)::bigint,
       -- Whoever was beyond the limit could be any kind's.
       bool_or(seen.cut) OR EXISTS (SELECT 1 FROM apart GROUP BY apart.part HAVING count(*) >= $1 * CASE apart.part WHEN 3 THEN 10 ELSE 1 END)
FROM clock CROSS JOIN seen GROUP BY seen.kind, clock.now
HAVING min(seen.oldest) < clock.now - interval '1 min' AND sum(seen.running) = 0
ORDER BY seen.kind
