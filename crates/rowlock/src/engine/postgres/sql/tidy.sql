-- purpose: add up the counts of ended jobs and refused enqueues, and drop lanes that nobody uses; both are small again then
CREATE FUNCTION rowlock.tidy() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '50ms' AS $$
BEGIN
    IF NOT rowlock.try_lock('rowlock.tally', 'SHARE UPDATE EXCLUSIVE') THEN
        RETURN;
    END IF;
    IF (SELECT count(*) FROM (SELECT 1 FROM rowlock.tally LIMIT 1001) AS few) > 1000 THEN
        WITH gone AS (DELETE FROM rowlock.tally RETURNING expires_on, queue, state, n)
        INSERT INTO rowlock.tally
        SELECT expires_on, queue, state, sum(n) FROM gone GROUP BY expires_on, queue, state HAVING sum(n) <> 0;
    END IF;
    IF (SELECT count(*) FROM (SELECT 1 FROM rowlock.switched LIMIT 1001) AS few) > 1000 THEN
        WITH gone AS (DELETE FROM rowlock.switched RETURNING target, name, n)
        INSERT INTO rowlock.switched SELECT target, name, sum(n) FROM gone GROUP BY target, name;
    END IF;
    -- A lane that is dropped too early is found again by a claim without bounds.
    IF (SELECT count(*) FROM (SELECT 1 FROM rowlock.lane LIMIT 1001) AS few) > 1000 THEN
        DELETE FROM rowlock.lane AS l
        WHERE NOT EXISTS (SELECT 1 FROM rowlock.job
                          WHERE job.queue = l.queue AND job.kind = l.kind AND job.priority = l.priority)
          AND NOT EXISTS (SELECT 1 FROM rowlock.kind AS k
                          WHERE k.plain AND k.queue = l.queue AND k.kind = l.kind AND k.priority = l.priority);
    END IF;
    PERFORM rowlock.note_plain();
    DELETE FROM rowlock.cancelling AS c
    WHERE NOT EXISTS (SELECT 1 FROM rowlock.job WHERE job.id = c.id AND job.token = c.token);
EXCEPTION WHEN lock_not_available THEN
    NULL;
END $$
