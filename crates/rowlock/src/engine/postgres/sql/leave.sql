-- purpose: a worker goes; what it still holds is given back
CREATE FUNCTION rowlock.leave(of_worker bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
BEGIN
    -- The worker's row first, as in a heartbeat; claims of this worker that are under way end before. What is being
    -- completed in an open transaction is left; it ends with that transaction, or is found under nobody's name.
    DELETE FROM rowlock.worker WHERE number = of_worker;
    PERFORM rowlock.return_held(of_worker, '{}', false, NULL, NULL, NULL, NULL, 0, rowlock.now());
    DELETE FROM rowlock.cancelling WHERE worker = of_worker;
END $$
