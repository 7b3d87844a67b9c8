-- purpose: what a route holds in the ring: what it has not held for long, since the rest is set aside here
-- differs: only Postgres has a ring. It has no index by holder, so it is walked once for a whole list.
CREATE FUNCTION rowlock.sent_young(holder text)
RETURNS TABLE (id bigint, token bigint, age_ms bigint, attempt integer, max_attempts integer, backoff text, suspect boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    of_worker CONSTANT bigint := (SELECT w.number FROM rowlock.worker AS w WHERE w.id = holder);
BEGIN
    FOR segment IN 0..3 LOOP
        PERFORM rowlock.set_sent_aside(segment, now);
    END LOOP;
    RETURN QUERY
    SELECT job.id, job.token, (extract(epoch FROM now - job.started_at) * 1000)::bigint, job.attempt, job.max_attempts,
           coalesce(job.backoff, k.backoff)::text, job.suspect
    FROM (SELECT * FROM rowlock.job_0 UNION ALL SELECT * FROM rowlock.job_1
          UNION ALL SELECT * FROM rowlock.job_2 UNION ALL SELECT * FROM rowlock.job_3) AS job
    LEFT JOIN rowlock.kind AS k ON k.kind = job.kind
    WHERE job.worker = of_worker ORDER BY job.id;
END $$
