-- purpose: where live jobs are that stand under these claims, locked in one order; nothing for any other
-- A token of NULL means a job that nobody has claimed.
-- differs: a segment of dead rows looks empty to the planner, and then an index that ends with the id is as good
-- to him as the primary key: he would walk all of it for each job. Only the key has them in this order.
CREATE FUNCTION rowlock.whereabouts(
    ids bigint[], tokens bigint[], OUT segments oid[], OUT places tid[], OUT cancels boolean[])
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_sort = off
SET enable_nestloop = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    -- Few, since a claim has one for all its jobs. Whose claim it isn't need not be waited for.
    every CONSTANT bigint[] := ARRAY (SELECT DISTINCT coalesce(token, 0) FROM unnest(tokens) AS token);
BEGIN
    SELECT array_agg(found.segment ORDER BY v.n), array_agg(found.place ORDER BY v.n),
           array_agg(found.cancel_requested ORDER BY v.n)
    INTO segments, places, cancels
    FROM unnest(ids, tokens) WITH ORDINALITY AS v (id, token, n)
    LEFT JOIN (SELECT job.tableoid AS segment, job.ctid AS place, job.id, job.token, job.cancel_requested
               FROM rowlock.job WHERE job.id = ANY (ids) AND coalesce(job.token, 0) = ANY (every)
               ORDER BY job.id FOR UPDATE) AS found
    ON found.id = v.id AND found.token IS NOT DISTINCT FROM v.token;
END $$
