-- purpose: remove jobs that aren't running
-- moves: delete pending -> none
-- moves: prune completed -> none
-- moves: prune failed -> none
-- moves: prune cancelled -> none
CREATE FUNCTION rowlock.delete(ids bigint[]) RETURNS TABLE (answer text, state text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    job_id bigint;
BEGIN
    FOREACH job_id IN ARRAY ids LOOP
        answer := NULL;
        FOR look IN 1..10 LOOP
            PERFORM rowlock.settle_finish(ARRAY[job_id], ARRAY[NULL::bigint], ARRAY[NULL::text], '{}', '{}', 0, now);
            IF FOUND OR rowlock.forget(job_id) THEN
                answer := 'deleted';
                EXIT;
            END IF;
            state := rowlock.state_of(job_id);
            EXIT WHEN state IS NULL OR state = 'processing';
        END LOOP;
        RETURN NEXT;
    END LOOP;
END $$
