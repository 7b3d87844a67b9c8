-- purpose: see that new ids are ahead of every stored one: sequences don't travel with logical copies
-- Returns by how much they were behind; they are ahead afterwards.
CREATE FUNCTION rowlock.check_ids() RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    highest bigint;
    worker bigint;
    latest bigint;
BEGIN
    SELECT max(id) INTO highest FROM (
        SELECT max(id) AS id FROM rowlock.job_0 UNION ALL SELECT max(id) FROM rowlock.job_1
        UNION ALL SELECT max(id) FROM rowlock.job_2 UNION ALL SELECT max(id) FROM rowlock.job_3
        UNION ALL SELECT max(id) FROM rowlock.aside UNION ALL SELECT max(id) FROM rowlock.history) AS stored;
    -- A sequence that wasn't asked yet gives out its first number again.
    SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END INTO latest FROM rowlock.job_id;
    SELECT max(number) INTO worker FROM rowlock.worker;
    IF worker > (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM rowlock.worker_number_seq) THEN
        PERFORM setval('rowlock.worker_number_seq', worker);
    END IF;
    IF highest > latest THEN
        PERFORM setval('rowlock.job_id', highest);
        RETURN highest - latest;
    END IF;
    RETURN 0;
END $$
