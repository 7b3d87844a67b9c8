-- purpose: see that new ids are ahead of every stored one: sequences don't travel with logical copies
-- Returns by how much they were behind; they are ahead afterwards.
CREATE FUNCTION rowlock.check_ids() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    behind bigint;
BEGIN
    FOR look IN 1..2 LOOP
        -- A sequence that nobody has used yet gives its last value out next.
        SELECT greatest(0, max(stored.id) - min(CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END))
        INTO behind
        FROM rowlock.job_id AS s, (
            SELECT max(id) AS id FROM rowlock.job_0 UNION ALL SELECT max(id) FROM rowlock.job_1
            UNION ALL SELECT max(id) FROM rowlock.job_2 UNION ALL SELECT max(id) FROM rowlock.job_3
            UNION ALL SELECT max(id) FROM rowlock.aside UNION ALL SELECT max(id) FROM rowlock.history) AS stored;
        EXIT WHEN behind = 0;
        IF look = 1 THEN
            -- One at a time, and after another look: nobody sets them back.
            LOCK TABLE ONLY rowlock.job IN SHARE UPDATE EXCLUSIVE MODE;
        ELSE
            PERFORM setval('rowlock.job_id', nextval('rowlock.job_id') + behind) WHERE behind > 0;
        END IF;
    END LOOP;
    RETURN behind;
END $$
