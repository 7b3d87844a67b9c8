-- purpose: where a job stands
CREATE FUNCTION rowlock.state_of(job_id bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(
        (SELECT CASE WHEN token IS NULL THEN 'pending' ELSE 'processing' END FROM rowlock.job WHERE id = job_id LIMIT 1),
        (SELECT state FROM rowlock.history WHERE id = job_id LIMIT 1));
END $$
