-- purpose: the worker lives; what it holds that somebody wants cancelled, and what a switch has stopped
-- search: also give back rows whose claim's answer never reached the worker, who holds these tokens
CREATE FUNCTION rowlock.heartbeat(of_worker bigint, held bigint[], search boolean)
RETURNS TABLE (what text, name text, id bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
BEGIN
    -- Observers watch whether it changes, so it does, even if the clock stands still or was set back.
    UPDATE rowlock.worker SET seen_at = CASE seen_at WHEN now THEN now + interval '1 us' ELSE now END
    WHERE number = of_worker;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the worker was given up' USING ERRCODE = 'RL002';
    END IF;
    IF search THEN
        RETURN QUERY SELECT 'released', NULL, (r.returned + r.ended)::bigint
        FROM rowlock.return_held(of_worker, held, false, NULL, NULL, NULL, NULL, 0, now) AS r;
    END IF;
    RETURN QUERY
    SELECT 'cancel', NULL, c.id FROM rowlock.cancelling AS c WHERE c.worker = of_worker AND c.token = ANY (held)
    UNION ALL
    SELECT 'kind', k.kind, NULL FROM rowlock.kind AS k
    WHERE rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause')
    UNION ALL
    SELECT 'queue', q.queue, NULL FROM rowlock.queue AS q
    WHERE rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause');
END $$
