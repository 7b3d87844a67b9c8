-- purpose: remember which suspect job a worker runs, while the claim holds; whether it does
CREATE FUNCTION rowlock.start_suspect(of_worker bigint, of_suspect bigint, with_token bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE rowlock.worker SET suspect_id = of_suspect, suspect_token = with_token
    WHERE number = of_worker AND EXISTS (
        SELECT 1 FROM rowlock.job WHERE job.id = of_suspect AND job.token = with_token AND job.worker = of_worker);
    RETURN FOUND;
END $$
