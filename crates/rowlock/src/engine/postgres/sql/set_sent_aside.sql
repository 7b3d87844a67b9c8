-- purpose: take what routes have held for long out of one segment, so that it can be emptied; how many jobs
-- differs: only Postgres sets jobs aside. A worker does so for itself, but a route may have nobody who lives.
CREATE FUNCTION rowlock.set_sent_aside(segment integer, now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    moved bigint := 0;
BEGIN
    -- Routes are below zero.
    IF EXISTS (SELECT 1 FROM rowlock.worker WHERE number < 0) THEN
        EXECUTE format($move$
            WITH old AS MATERIALIZED (
                -- Not one that is being settled: it goes by itself.
                SELECT ctid AS place FROM rowlock.job_%1$s
                WHERE worker < 0 AND started_at <= $1 - interval '10 s' LIMIT 20000
                FOR UPDATE SKIP LOCKED
            ), gone AS (
                DELETE FROM rowlock.job_%1$s WHERE ctid = ANY (ARRAY (SELECT place FROM old)) RETURNING *
            )
            INSERT INTO rowlock.aside SELECT * FROM gone
            $move$, segment) USING now;
        GET DIAGNOSTICS moved = ROW_COUNT;
    END IF;
    RETURN moved;
END $$
