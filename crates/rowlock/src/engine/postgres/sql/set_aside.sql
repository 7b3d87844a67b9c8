-- purpose: take jobs that run for long out of the ring, so that their segments can be emptied
-- differs: only Postgres sets jobs aside; their state stays as it is
CREATE FUNCTION rowlock.set_aside(ids bigint[], tokens bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_sort = off
SET lock_timeout = '5s' AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH slow AS MATERIALIZED (
        -- Not one that is being settled: it goes by itself. The order is that of the primary key, as in whereabouts.
        SELECT job.tableoid AS segment, job.ctid AS place FROM rowlock.job
        WHERE job.id = ANY (ids) AND job.token = ANY (tokens) AND job.tableoid <> 'rowlock.aside'::regclass
        ORDER BY job.id FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM rowlock.job AS job USING slow
        WHERE job.ctid = slow.place AND job.tableoid = slow.segment
        RETURNING job.*
    )
    INSERT INTO rowlock.aside SELECT * FROM gone RETURNING id;
END $$
