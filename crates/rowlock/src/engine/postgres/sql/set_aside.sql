-- purpose: take jobs that run for long out of the ring, so that their segments can be emptied
-- differs: only Postgres sets jobs aside; their state stays as it is
CREATE FUNCTION rowlock.set_aside(ids bigint[], tokens bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH slow AS MATERIALIZED (
        -- Not one that is being settled: it goes by itself.
        SELECT job.id FROM unnest(ids, tokens) AS slow (id, token)
        JOIN rowlock.job ON job.id = slow.id AND job.token = slow.token
        WHERE job.id = ANY (ids) AND job.tableoid <> 'rowlock.aside'::regclass
        ORDER BY job.id FOR UPDATE OF job SKIP LOCKED
    ), gone AS (
        DELETE FROM rowlock.job AS job USING slow
        -- The list itself bounds the index scans, whatever the planner thinks of the sizes.
        WHERE job.id = ANY (ids) AND job.id = slow.id AND job.token = ANY (tokens)
          AND job.tableoid <> 'rowlock.aside'::regclass
        RETURNING job.*
    )
    INSERT INTO rowlock.aside SELECT * FROM gone RETURNING id;
END $$
