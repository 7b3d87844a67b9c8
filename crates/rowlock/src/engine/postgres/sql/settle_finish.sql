-- purpose: live jobs end, wherever they are: kept in the history, or gone when nothing is to be kept
-- moves: settle_done processing -> completed
-- moves: settle_not_needed processing -> completed
-- moves: settle_fail processing -> failed
-- moves: settle_cancelled processing -> cancelled
-- moves: send processing -> none
-- moves: expire processing -> failed
-- moves: expire processing -> cancelled
-- moves: cancel pending -> cancelled
-- moves: delete pending -> none
-- differs: its settings are its own, since its plans outlive whoever calls it first
-- A token of NULL means a job that nobody has claimed.
-- After a copy without sequences the history may have the number of another job already: then the later one is kept
-- in the piece for what is kept long, or, if that has it too, not at all. It ends in any case.
CREATE FUNCTION rowlock.settle_finish(
    ids bigint[], tokens bigint[], states text[], began timestamptz[], errors_added jsonb[], errors_kept integer, now timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    spots record;
    ended bigint[];
BEGIN
    SELECT * INTO spots FROM rowlock.whereabouts(ids, tokens);
    FOR careful IN 0..1 LOOP BEGIN
    WITH gone AS (
        DELETE FROM rowlock.job AS job
        USING unnest(spots.segments, spots.places, ids, tokens, states, began, errors_added)
            AS done (segment, place, id, token, state, began, error)
        WHERE job.ctid = done.place AND job.tableoid = done.segment AND job.id + 0 = done.id
          AND job.token IS NOT DISTINCT FROM done.token
        RETURNING job.*, coalesce(done.began, job.started_at) AS began, done.state, done.error
    ), leaving AS (
        SELECT gone.*, rowlock.expiry(now, keep.ms) AS expires_on
        FROM gone LEFT JOIN rowlock.kind AS k ON k.kind = gone.kind
        CROSS JOIN LATERAL (SELECT CASE gone.state
            WHEN 'completed' THEN coalesce(k.keep_completed_ms, 86400000)
            WHEN 'failed' THEN coalesce(k.keep_failed_ms, 2592000000)
            WHEN 'cancelled' THEN coalesce(k.keep_cancelled_ms, 604800000)
            ELSE 0 END AS ms) AS keep
        WHERE keep.ms > 0
    ), kept AS (
        INSERT INTO rowlock.history
        SELECT id, CASE careful WHEN 0 THEN rowlock.slot(expires_on, now)
                                ELSE rowlock.spare_slot(id, rowlock.slot(expires_on, now)) END,
               expires_on, scheduled_at, created_at, began, now, attempt, max_attempts, priority, until_start, state, queue, kind, unique_key, tags, trace_context,
               backoff, rowlock.with_error(errors, error, errors_kept), payload
        FROM leaving WHERE careful = 0 OR rowlock.spare_slot(id, rowlock.slot(expires_on, now)) IS NOT NULL
    ), counted AS (
        INSERT INTO rowlock.tally SELECT expires_on, queue, state, count(*) FROM leaving
        WHERE careful = 0 OR rowlock.spare_slot(id, rowlock.slot(expires_on, now)) IS NOT NULL
        GROUP BY expires_on, queue, state
    ), freed AS (
        -- By the holder, as in settle_done.
        DELETE FROM rowlock.key WHERE key.id = ANY (ARRAY (
            SELECT gone.id FROM gone WHERE gone.unique_key IS NOT NULL))
          AND ((key.id, key.kind, key.unique_key) IN (SELECT gone.id, gone.kind, gone.unique_key FROM gone)) IS TRUE
    ), held_back AS (
        -- Ticks leave the keys of what failed or was called off alone, whatever is kept of the job itself.
        INSERT INTO rowlock.pair_key (pair, key, reason, not_before, n)
        SELECT DISTINCT ON (p.name, gone.unique_key) p.name, gone.unique_key, gone.state,
               CASE gone.state WHEN 'failed' THEN now + rowlock.hold_back(p.hold_back_ms, times.n) END, times.n
        FROM gone JOIN rowlock.pair AS p ON p.kind = gone.kind AND p.hold_back_ms > 0
        LEFT JOIN rowlock.pair_key AS old ON old.pair = p.name AND old.key = gone.unique_key
        CROSS JOIN LATERAL (SELECT CASE WHEN gone.state = 'failed' AND old.reason = 'failed'
            THEN old.n + 1 ELSE 1 END AS n) AS times
        -- No tick asks for a key that no row can have: an array, or the hash of a long one.
        WHERE gone.unique_key ~ '^([[].*[]]|[0-9a-f]{64})$' AND gone.state IN ('failed', 'cancelled')
        ORDER BY p.name, gone.unique_key, gone.id DESC
        ON CONFLICT (pair, key) DO UPDATE
        SET reason = EXCLUDED.reason, not_before = EXCLUDED.not_before, n = EXCLUDED.n
    ), told AS (
        DELETE FROM rowlock.cancelling USING gone WHERE gone.cancel_requested AND cancelling.id = gone.id
    )
    SELECT array_agg(id) INTO ended FROM gone;
    EXIT;
    EXCEPTION WHEN unique_violation THEN
        IF careful = 1 THEN
            RAISE;
        END IF;
    END; END LOOP;
    RETURN QUERY SELECT unnest(ended);
END $$
