-- purpose: end a claimed job as done in a transaction of the caller's; whether the claim was the current one
-- moves: settle_done processing -> completed
-- differs: looks where the job was claimed first, so that the caller's transaction locks no other segment
CREATE FUNCTION rowlock.complete(segment smallint, job_id bigint, with_token bigint, began_ago_ms bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    here record;
BEGIN
    -- To the statements below no token means a job that nobody has claimed.
    IF with_token IS NULL OR job_id IS NULL THEN
        RETURN false;
    END IF;
    IF segment BETWEEN 0 AND 3 THEN
        -- By the primary key, as in whereabouts.
        EXECUTE format('SELECT ctid AS place, kind, queue, unique_key IS NOT NULL AS keyed FROM rowlock.job_%s '
                       'WHERE id = ANY ($1) AND token = $2 ORDER BY id FOR UPDATE', segment)
            INTO here USING ARRAY[job_id], with_token;
        IF here.place IS NOT NULL THEN
            EXECUTE format('SELECT rowlock.settle_done_%s($1, $2, $3, $4, $5, $6, $7, $8)', segment)
                USING with_token, here.kind, here.queue, here.keyed, ARRAY[here.place], ARRAY[job_id], ARRAY[began_ago_ms], now;
            RETURN true;
        END IF;
    END IF;
    PERFORM rowlock.settle_finish(ARRAY[job_id], ARRAY[with_token], '{completed}',
        ARRAY[now - began_ago_ms * interval '1 ms'], '{}', 0, now);
    IF FOUND THEN
        RETURN true;
    END IF;
    -- An old snapshot can't tell a job that was set aside from one that is somebody else's now.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the job is not where this transaction''s snapshot has it' USING ERRCODE = '40001';
    END IF;
    RETURN false;
END $$
