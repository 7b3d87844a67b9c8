-- purpose: bring jobs whose time has come back into the ring, at most a thousand
-- earliest: the first place they got; latest: how far it was, so that nobody walks past those again
-- differs: only Postgres sets jobs aside
CREATE FUNCTION rowlock.bring_back_due(after timestamptz, everything boolean, OUT earliest timestamptz, OUT latest timestamptz)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    due record;
BEGIN
    IF everything THEN
        -- Jobs that no switch holds any more wait for their time like others.
        UPDATE rowlock.aside SET held = false WHERE id IN (
            SELECT a.id FROM (
                WITH RECURSIVE step AS (
                    (SELECT queue, kind FROM rowlock.aside WHERE held ORDER BY queue, kind LIMIT 1)
                    UNION ALL
                    SELECT next.* FROM step CROSS JOIN LATERAL (
                        SELECT a.queue, a.kind FROM rowlock.aside AS a
                        WHERE a.held AND (a.queue, a.kind) > (step.queue, step.kind)
                        ORDER BY a.queue, a.kind LIMIT 1) AS next)
                SELECT * FROM step) AS pair
            LEFT JOIN rowlock.kind AS k ON k.kind = pair.kind
            LEFT JOIN rowlock.queue AS q ON q.queue = pair.queue
            CROSS JOIN LATERAL (
                SELECT a.id FROM rowlock.aside AS a
                WHERE a.held AND a.queue = pair.queue AND a.kind = pair.kind LIMIT 1000
                FOR UPDATE SKIP LOCKED) AS a
            WHERE NOT rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause')
              AND NOT rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause')
            LIMIT 1000);
    END IF;
    EXECUTE format($move$
        WITH gone AS (
            DELETE FROM rowlock.aside WHERE id IN (
                SELECT a.id FROM rowlock.aside AS a
                WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect AND a.ready_at >= $1 AND a.ready_at <= $2
                  -- Two jobs of one number, as after a copy without sequences: the other one has to end first. The order
                  -- leaves one index for it: to the planner a segment of dead rows is empty, and any index as good.
                  AND (SELECT twin.id FROM rowlock.job_%1$s AS twin WHERE twin.id = a.id
                       ORDER BY twin.id LIMIT 1) IS NULL
                ORDER BY a.ready_at, a.id LIMIT 1000
                FOR UPDATE SKIP LOCKED)
            RETURNING *
        ), placed AS (
            INSERT INTO rowlock.job_%1$s
            SELECT id, rowlock.place(scheduled_at, $2), scheduled_at, created_at, started_at, token, worker, attempt,
                   max_attempts, priority, until_start, cancel_requested, suspect, held, queue, kind, unique_key, tags,
                   trace_context, backoff, errors, payload
            FROM gone RETURNING ready_at, queue, kind, priority
        )
        SELECT min(ready_at) AS earliest, (SELECT max(ready_at) FROM gone) AS latest,
               array_agg(DISTINCT ROW(queue, kind, priority)::rowlock.lane) AS lanes
        FROM placed
        $move$, (SELECT last_value % 8 FROM rowlock.ring))
    INTO due USING CASE WHEN everything THEN '-infinity' ELSE after END, now;
    PERFORM rowlock.arrived(due.lanes, due.earliest, now);
    earliest := due.earliest;
    latest := due.latest;
END $$
