-- purpose: claimed jobs wait for another attempt
-- moves: settle_retry processing -> pending
-- moves: settle_snooze processing -> pending
-- moves: release processing -> pending
-- moves: expire processing -> pending
-- A job that somebody wants cancelled gets no other attempt: it ends by settle_finish instead.
-- wait_ms NULL: due as before; suspects NULL: the mark stays
CREATE FUNCTION rowlock.settle_again(
    ids bigint[], tokens bigint[], wait_ms bigint[], given_back integer[], suspects boolean[],
    errors_added jsonb[], errors_kept integer, now timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    back rowlock.job[];
BEGIN
    WITH gone AS (
        DELETE FROM rowlock.job AS job
        USING unnest(ids, tokens, wait_ms, given_back, suspects, errors_added)
            AS next (id, token, wait_ms, given_back, suspect, error)
        -- The list itself bounds the index scans, whatever the planner thinks of the sizes.
        WHERE job.id = ANY (ids) AND job.id = next.id AND job.token = next.token AND NOT job.cancel_requested
        RETURNING job.*, coalesce(now + next.wait_ms * interval '1 ms', job.scheduled_at) AS due,
            next.given_back, coalesce(next.suspect, job.suspect) AS marked, next.error
    )
    SELECT array_agg(ROW(id, rowlock.place(due, now), due, created_at, started_at, NULL, NULL, attempt - given_back,
        max_attempts, priority, until_start, false, marked, false, queue, kind, unique_key, tags, trace_context,
        backoff, rowlock.with_error(errors, error, errors_kept), payload)::rowlock.job)
    INTO back FROM gone;
    PERFORM rowlock.put(back, now);
    RETURN QUERY SELECT id FROM unnest(back);
END $$
