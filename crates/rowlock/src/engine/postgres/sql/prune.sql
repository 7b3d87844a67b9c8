-- purpose: remove the ended jobs of a day that is over, as a whole where that is possible; says how many
-- moves: prune completed -> none
-- moves: prune failed -> none
-- moves: prune cancelled -> none
-- differs: a day's piece is truncated; only what is kept for more than a month is deleted row by row
CREATE FUNCTION rowlock.prune() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '50ms' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    today CONSTANT date := (now AT TIME ZONE 'UTC')::date;
    day date;
    piece integer;
    pruned bigint := 0;
BEGIN
    -- The same lock as whoever adds up the counts.
    IF NOT rowlock.try_lock('rowlock.tally', 'SHARE UPDATE EXCLUSIVE') THEN
        RETURN 0;
    END IF;
    FOR day IN SELECT expires_on FROM rowlock.tally WHERE expires_on < today
               GROUP BY expires_on HAVING sum(n) > 0 ORDER BY expires_on LOOP
        -- One day at a time: nobody waits for one because of another.
        EXIT WHEN pruned > 0;
        piece := (day - date '1970-01-01') % 40;
        BEGIN
            EXECUTE format('LOCK TABLE rowlock.history_%s IN ACCESS EXCLUSIVE MODE', piece);
            -- The count is exact here: whoever ends a job writes both, and nobody is in between now.
            IF NOT EXISTS (SELECT 1 FROM rowlock.tally
                           WHERE expires_on <> day AND (expires_on - date '1970-01-01') % 40 = piece
                           GROUP BY expires_on HAVING sum(n) > 0) THEN
                EXECUTE format('TRUNCATE rowlock.history_%s', piece);
            ELSE
                EXECUTE format('DELETE FROM rowlock.history_%s WHERE expires_on = $1', piece) USING day;
            END IF;
            DELETE FROM rowlock.history_later WHERE expires_on = day;
            pruned := pruned + (SELECT sum(n) FROM rowlock.tally WHERE expires_on = day);
            DELETE FROM rowlock.tally WHERE expires_on = day;
        EXCEPTION WHEN lock_not_available THEN
            -- Somebody reads an ended day. It will still be there at the next round.
            NULL;
        END;
    END LOOP;
    DELETE FROM rowlock.tally WHERE pruned = 0 AND expires_on < today AND expires_on IN (
        SELECT expires_on FROM rowlock.tally GROUP BY expires_on HAVING sum(n) = 0);
    RETURN pruned;
END $$
