-- purpose: a route's lease begins, for whichever drain says so; what it has sent and should not run any more
-- The first row has its number alone. Only while a switch is on is what was sent looked through: what was
-- set aside, and the front of each lane, where claims have been.
CREATE FUNCTION rowlock.keep_route(holder text, lease bigint)
RETURNS TABLE (number bigint, id bigint, token bigint, cancels boolean) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    of_worker bigint;
    kinds text[];
    queues text[];
BEGIN
    -- Its number is below zero and made from its name: if somebody removes the row, the next one is its again.
    INSERT INTO rowlock.worker AS w (number, id, lease_ms, joined_at, seen_at)
    VALUES (-1 - (hashtextextended(holder, 0) & 4611686018427387903), holder, lease, now, now)
    ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at, lease_ms = EXCLUDED.lease_ms
    RETURNING w.number INTO of_worker;
    RETURN QUERY SELECT of_worker, NULL::bigint, NULL::bigint, NULL::boolean
    UNION ALL SELECT of_worker, c.id, c.token, true FROM rowlock.cancelling AS c WHERE c.worker = of_worker;
    kinds := ARRAY (SELECT k.kind FROM rowlock.kind AS k
                    WHERE rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause'));
    queues := ARRAY (SELECT q.queue FROM rowlock.queue AS q
                     WHERE rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause'));
    IF kinds = '{}' AND queues = '{}' THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT of_worker, a.id, a.token, false FROM rowlock.aside AS a
    WHERE a.worker = of_worker AND (a.kind = ANY (kinds) OR a.queue = ANY (queues)) AND NOT a.cancel_requested
    UNION
    SELECT of_worker, job.id, job.token, false
    FROM (SELECT DISTINCT l.queue, l.kind, l.priority FROM rowlock.lane AS l
          WHERE l.kind = ANY (kinds) OR l.queue = ANY (queues)) AS lane
    CROSS JOIN LATERAL (
        (SELECT * FROM rowlock.job_0 AS j WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT 20000)
        UNION ALL
        (SELECT * FROM rowlock.job_1 AS j WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT 20000)
        UNION ALL
        (SELECT * FROM rowlock.job_2 AS j WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT 20000)
        UNION ALL
        (SELECT * FROM rowlock.job_3 AS j WHERE j.queue = lane.queue AND j.kind = lane.kind AND j.priority = lane.priority
         ORDER BY j.ready_at, j.id LIMIT 20000)) AS job
    WHERE job.worker = of_worker AND NOT job.cancel_requested;
END $$
