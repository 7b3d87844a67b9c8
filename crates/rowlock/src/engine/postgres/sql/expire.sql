-- purpose: give back what a dead worker held; only the suspect that it had begun pays
-- moves: expire processing -> pending
-- moves: expire processing -> failed
-- moves: expire processing -> cancelled
-- seen: when it was last seen; if it was heard since, it lives. NULL: it has no row.
-- suspect, suspect_token: the suspect that was seen begun, which alone pays; wait_ms, error: what it waits
-- and remembers. Rows that an open transaction completes are left, and the worker with them, for another time.
-- A route is never given up, whoever asks for it.
-- observed: the caller has seen the same heartbeat for a whole lease of its own time. Programs of schema 7 haven't:
-- they compare it with the server's clock, which may have jumped. For them it has to stand still for half a lease
-- after they first asked; a living worker beats three times in a lease.
CREATE FUNCTION rowlock.expire(
    of_worker bigint, seen timestamptz, suspect bigint, with_token bigint, wait_ms bigint, error text,
    errors_kept integer, observed boolean DEFAULT false,
    OUT buried boolean, OUT returned integer, OUT ended integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    paying record;
BEGIN
    -- Claims of this worker that are under way end first, see worker_lives; a later one finds it gone.
    SELECT suspect_id, suspect_token INTO paying FROM rowlock.worker
    WHERE number = of_worker AND id NOT LIKE 'drain:%' AND seen_at IS NOT DISTINCT FROM seen FOR UPDATE;
    buried := FOUND OR (seen IS NULL AND of_worker > 0 AND NOT EXISTS (SELECT 1 FROM rowlock.worker WHERE number = of_worker));
    returned := 0;
    ended := 0;
    IF NOT buried THEN
        RETURN;
    END IF;
    IF NOT observed AND seen IS NOT NULL THEN
        UPDATE rowlock.worker AS w SET doubted_seen = seen, doubted_at = now
        WHERE w.number = of_worker AND (w.doubted_seen IS DISTINCT FROM seen OR w.doubted_at > now);
        buried := NOT FOUND AND EXISTS (SELECT 1 FROM rowlock.worker AS w WHERE w.number = of_worker
                                        AND w.doubted_at + w.lease_ms * interval '0.5 ms' <= now);
        IF NOT buried THEN
            RETURN;
        END IF;
    END IF;
    IF (paying.suspect_id, paying.suspect_token) IS DISTINCT FROM (suspect, with_token) THEN
        suspect := NULL;
    END IF;
    SELECT r.returned, r.ended INTO returned, ended
    FROM rowlock.return_held(of_worker, '{}', true, suspect, with_token, wait_ms, error, errors_kept, now) AS r;
    IF EXISTS (SELECT 1 FROM rowlock.job WHERE worker = of_worker) THEN
        buried := false;
        RETURN;
    END IF;
    DELETE FROM rowlock.worker WHERE number = of_worker;
    DELETE FROM rowlock.cancelling WHERE worker = of_worker;
END $$
