-- purpose: bring jobs whose time has come back into the ring, at most a thousand; says how many
-- differs: only Postgres sets jobs aside
CREATE FUNCTION rowlock.bring_back(after timestamptz, everything boolean) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    due rowlock.job[];
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
                WHERE a.held AND a.queue = pair.queue AND a.kind = pair.kind LIMIT 1000) AS a
            WHERE NOT rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause')
              AND NOT rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause')
            LIMIT 1000);
    END IF;
    WITH gone AS (
        DELETE FROM rowlock.aside WHERE id IN (
            SELECT a.id FROM rowlock.aside AS a
            WHERE a.token IS NULL AND NOT a.held AND NOT a.suspect
              AND a.ready_at >= CASE WHEN everything THEN '-infinity' ELSE after END AND a.ready_at <= now
            ORDER BY a.ready_at, a.id LIMIT 1000
            FOR UPDATE SKIP LOCKED)
        RETURNING *
    )
    SELECT array_agg(ROW(id, rowlock.place(scheduled_at, now), scheduled_at, created_at, started_at, token, worker, attempt,
        max_attempts, priority, until_start, cancel_requested, suspect, held, queue, kind, unique_key, tags,
        trace_context, backoff, errors, payload)::rowlock.job)
    INTO due FROM gone;
    PERFORM rowlock.put(due, now);
    RETURN coalesce(cardinality(due), 0);
END $$
