-- purpose: claimed jobs of one segment whose work is done end and are kept in the history, many at once
-- moves: settle_done processing -> completed
-- moves: settle_not_needed processing -> completed
-- differs: found by their place; what has moved since is left to settle_finish
CREATE FUNCTION rowlock.settle_done_{s}(places tid[], ids bigint[], tokens bigint[], began_ago_ms bigint[], now timestamptz)
RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    ended bigint[];
BEGIN
    WITH gone AS MATERIALIZED (
        DELETE FROM rowlock.job_{s} AS job
        USING unnest(places, ids, tokens, began_ago_ms) AS done (place, id, token, ago)
        -- Not "id =": a segment of dead rows looks empty to the planner, who would walk its whole index.
        WHERE job.ctid = done.place AND job.id + 0 = done.id AND job.token = done.token
        RETURNING job.*, coalesce(now - done.ago * interval '1 ms', job.started_at) AS began
    ), sums AS MATERIALIZED (
        -- What a kind says is asked for once, not for each job.
        SELECT s.queue, s.kind, s.n, e.expires_on, rowlock.slot(e.expires_on, now) AS slot
        FROM (SELECT gone.queue, gone.kind, count(*) AS n FROM gone GROUP BY gone.queue, gone.kind) AS s
        LEFT JOIN rowlock.kind AS k ON k.kind = s.kind
        CROSS JOIN LATERAL (SELECT rowlock.expiry(now, coalesce(k.keep_completed_ms, 86400000)) AS expires_on) AS e
        WHERE coalesce(k.keep_completed_ms, 86400000) > 0
    ), kept AS (
        INSERT INTO rowlock.history
        SELECT id, slot, expires_on, scheduled_at, created_at, began, now, attempt, max_attempts, priority,
               until_start, 'completed', gone.queue, gone.kind, unique_key, tags, trace_context, backoff, errors, payload
        FROM gone JOIN sums ON sums.queue = gone.queue AND sums.kind = gone.kind
    ), counted AS (
        INSERT INTO rowlock.tally SELECT expires_on, queue, 'completed', sum(n) FROM sums GROUP BY expires_on, queue
    ), freed AS (
        DELETE FROM rowlock.key USING gone
        WHERE gone.unique_key IS NOT NULL
          AND key.kind = gone.kind AND key.unique_key = gone.unique_key AND key.id = gone.id
    ), told AS (
        DELETE FROM rowlock.cancelling USING gone WHERE gone.cancel_requested AND cancelling.id = gone.id
    )
    SELECT array_agg(id) INTO ended FROM gone;
    RETURN ended;
END $$
