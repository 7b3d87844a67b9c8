-- purpose: stage the jobs of a cron's ticks, each tick once whoever asks, and move the cron on
-- moves: stage none -> pending
-- By hand (with_token NULL) the cron stays where it is. job: as rowlock.stage takes it, but for its time.
-- A leader waits shortly for a key that an open transaction has: it has other crons to fire, and tries this one again.
CREATE FUNCTION rowlock.fire(
    of_name text, with_token bigint, expected timestamptz, ticks timestamptz[], then_at timestamptz, job text)
RETURNS TABLE (tick timestamptz, id bigint, status text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    cron record;
    each timestamptz;
BEGIN
    IF with_token IS NOT NULL THEN
        IF NOT EXISTS (
            SELECT 1 FROM rowlock.post AS p
            WHERE p.duty = 'cron' AND p.name = '' AND p.shard = 0 AND p.token = with_token) THEN
            RAISE EXCEPTION 'rowlock: another process leads the crons' USING ERRCODE = 'RL002';
        END IF;
        SET LOCAL lock_timeout = '100ms';
    END IF;
    SELECT c.paused, c.next_at INTO cron FROM rowlock.cron AS c WHERE c.name = of_name FOR UPDATE;
    IF NOT FOUND OR (with_token IS NOT NULL AND (cron.paused OR cron.next_at <> expected)) THEN
        RETURN;
    END IF;
    DELETE FROM rowlock.cron_tick AS k WHERE k.name = of_name AND k.tick IN (
        SELECT o.tick FROM rowlock.cron_tick AS o
        WHERE o.name = of_name AND o.tick < rowlock.now() - interval '30 days' AND o.tick < ALL (ticks)
        ORDER BY o.tick LIMIT 1000);
    FOREACH each IN ARRAY ticks LOOP
        INSERT INTO rowlock.cron_tick (name, tick) VALUES (of_name, each) ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
        SELECT each, staged.id, staged.status INTO tick, id, status
        FROM rowlock.stage(json_build_array((job::jsonb || jsonb_build_object('scheduled_at', each))::json)::text) AS staged;
        UPDATE rowlock.cron_tick AS k SET job_id = fire.id WHERE k.name = of_name AND k.tick = each;
        RETURN NEXT;
    END LOOP;
    IF with_token IS NOT NULL THEN
        UPDATE rowlock.cron AS c SET next_at = then_at WHERE c.name = of_name;
        -- The fence, at the end: the leader's beat waits for no key.
        PERFORM 1 FROM rowlock.post AS p
        WHERE p.duty = 'cron' AND p.name = '' AND p.shard = 0 AND p.token = with_token FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'rowlock: another process leads the crons' USING ERRCODE = 'RL002';
        END IF;
    END IF;
END $$
