-- purpose: claimed jobs of one segment, kind and queue whose work is done end, many at once
-- moves: settle_done processing -> completed
-- moves: settle_not_needed processing -> completed
-- differs: found by their places; what has moved since is left to settle_finish
-- ids: rising; what belongs to one is found by halving, which costs less than a join
-- A place is a hint, the token is the fence: whoever rewrites the table (VACUUM FULL) puts another job of the same
-- claim there. Then nothing of all this has happened, and the caller asks again without places.
CREATE FUNCTION rowlock.settle_done_{s}(
    with_token bigint, of_kind text, of_queue text, keyed boolean, places tid[], ids bigint[], began_ago_ms bigint[], now timestamptz)
RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    keep_ms CONSTANT bigint := coalesce((SELECT k.keep_completed_ms FROM rowlock.kind AS k WHERE k.kind = of_kind), 86400000);
    last_day CONSTANT date := rowlock.expiry(now, keep_ms);
    piece CONSTANT smallint := rowlock.slot(last_day, now);
    ended record;
BEGIN
    IF keep_ms <= 0 AND NOT keyed THEN
        WITH gone AS (
            DELETE FROM rowlock.job_{s} AS job WHERE job.ctid = ANY (places) AND job.token = with_token
            RETURNING job.id, job.cancel_requested)
        SELECT array_agg(id ORDER BY id) AS ids, bool_or(cancel_requested) AS cancels INTO ended FROM gone;
    ELSE
        WITH gone AS (
            DELETE FROM rowlock.job_{s} AS job WHERE job.ctid = ANY (places) AND job.token = with_token
            RETURNING job.*
        ), kept AS (
            INSERT INTO rowlock.history
            SELECT gone.id, piece, last_day, scheduled_at, created_at, coalesce(now - began_ago_ms[width_bucket(gone.id, ids)] * interval '1 ms', started_at),
                   now, attempt, max_attempts, priority, until_start, 'completed', queue, kind, unique_key, tags,
                   trace_context, backoff, errors, payload
            FROM gone WHERE keep_ms > 0
        ), freed AS (
            -- By the holder: a key that was used before has dead rows, all of them under the same key.
            DELETE FROM rowlock.key WHERE keyed AND key.id = ANY (ARRAY (
                SELECT gone.id FROM gone WHERE gone.unique_key IS NOT NULL))
            RETURNING key.id
        )
        SELECT array_agg(id ORDER BY id) AS ids, bool_or(cancel_requested) AS cancels,
               count(unique_key) AS keys, (SELECT count(*) FROM freed) AS freed
        INTO ended FROM gone;
        -- After a copy without sequences another job may have the same number, and a key of its own.
        IF ended.freed > ended.keys THEN
            RAISE EXCEPTION 'keys are not theirs alone' USING ERRCODE = 'RL003';
        END IF;
    END IF;
    IF ended.ids <> ids AND EXISTS (SELECT unnest(ended.ids) EXCEPT SELECT unnest(ids)) THEN
        RAISE EXCEPTION 'jobs are not where they were claimed' USING ERRCODE = 'RL003';
    END IF;
    IF keep_ms > 0 AND ended.ids IS NOT NULL THEN
        INSERT INTO rowlock.tally VALUES (last_day, of_queue, 'completed', cardinality(ended.ids));
    END IF;
    IF ended.cancels THEN
        DELETE FROM rowlock.cancelling WHERE id = ANY (ended.ids);
    END IF;
    RETURN ended.ids;
END $$
