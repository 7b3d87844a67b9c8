-- purpose: claimed jobs wait for another attempt
-- moves: settle_retry processing -> pending
-- moves: settle_snooze processing -> pending
-- moves: release processing -> pending
-- moves: expire processing -> pending
-- A job that somebody wants cancelled gets no other attempt: it ends by settle_finish instead.
-- wait_ms NULL: due as before; suspects NULL: the mark stays
-- differs: moved by one statement and not in a variable, which large payloads would not fit in
CREATE FUNCTION rowlock.settle_again(
    ids bigint[], tokens bigint[], wait_ms bigint[], given_back integer[], suspects boolean[],
    errors_added jsonb[], errors_kept integer, now timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    spots record;
    back record;
BEGIN
    SELECT * INTO spots FROM rowlock.whereabouts(ids, tokens);
    EXECUTE format($move$
        WITH gone AS (
            DELETE FROM rowlock.job AS job
            USING unnest($9, $10, $1, $2, $3, $4, $5, $6)
                AS next (segment, place, id, token, wait_ms, given_back, suspect, error)
            WHERE job.ctid = next.place AND job.tableoid = next.segment AND job.id + 0 = next.id
              AND job.token = next.token AND NOT job.cancel_requested
            RETURNING job.*, coalesce($8 + next.wait_ms * interval '1 ms', job.scheduled_at) AS due,
                next.given_back, coalesce(next.suspect, job.suspect) AS marked, next.error
        ), back AS (
            SELECT id, rowlock.place(due, $8) AS ready_at, due AS scheduled_at, created_at, started_at,
                   NULL::bigint AS token, NULL::bigint AS worker, attempt - given_back AS attempt, max_attempts,
                   priority, until_start, false AS cancel_requested, marked AS suspect, false AS held, queue, kind,
                   unique_key, tags, trace_context, backoff, rowlock.with_error(errors, error, $7) AS errors, payload
            FROM gone
        ), near AS (
            INSERT INTO rowlock.job_%s SELECT * FROM back WHERE NOT suspect AND ready_at <= $8 + interval '1 min'
        ), far AS (
            INSERT INTO rowlock.aside SELECT * FROM back WHERE suspect OR ready_at > $8 + interval '1 min'
        )
        SELECT array_agg(id) AS ids, min(ready_at) AS earliest,
               array_agg(DISTINCT ROW(queue, kind, priority)::rowlock.lane) AS lanes
        FROM back
        $move$, (SELECT last_value % 8 FROM rowlock.ring))
    INTO back USING ids, tokens, wait_ms, given_back, suspects, errors_added, errors_kept, now,
        spots.segments, spots.places;
    PERFORM rowlock.arrived(back.lanes, back.earliest, now);
    RETURN QUERY SELECT unnest(back.ids);
END $$
