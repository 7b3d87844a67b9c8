-- purpose: call off pending jobs and ask the holders of running ones to stop
-- moves: cancel pending -> cancelled
CREATE FUNCTION rowlock.cancel(ids bigint[]) RETURNS TABLE (answer text, state text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    job_id bigint;
    holder record;
BEGIN
    FOREACH job_id IN ARRAY ids LOOP
        answer := NULL;
        -- A job that moves while we look is there again at the next look.
        FOR look IN 1..10 LOOP
            PERFORM rowlock.settle_finish(ARRAY[job_id], ARRAY[NULL::bigint], '{cancelled}', '{}', '{}', 0, now);
            IF FOUND THEN
                answer := 'cancelled';
                EXIT;
            END IF;
            UPDATE rowlock.job SET cancel_requested = true WHERE id = job_id AND token IS NOT NULL
            RETURNING worker, token INTO holder;
            IF FOUND THEN
                INSERT INTO rowlock.cancelling (id, worker, token) VALUES (job_id, holder.worker, holder.token)
                ON CONFLICT (id) DO UPDATE SET worker = EXCLUDED.worker, token = EXCLUDED.token;
                answer := 'requested';
                EXIT;
            END IF;
            state := rowlock.state_of(job_id);
            EXIT WHEN state IS NULL OR state NOT IN ('pending', 'processing');
        END LOOP;
        RETURN NEXT;
    END LOOP;
END $$
