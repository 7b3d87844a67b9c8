-- purpose: lease the due jobs of one level of a queue from one segment, lane by lane, oldest first
-- moves: claim pending -> processing
-- differs: rows that a rival has locked are skipped; a bound says where each lane's scan begins
CREATE FUNCTION rowlock.claim_{s}(
    at_queue text, at_priority smallint, kinds text[], times timestamptz[], ids bigint[],
    quota integer, room integer, to_worker bigint, with_token bigint, now timestamptz)
RETURNS SETOF rowlock.claimed LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH chosen AS MATERIALIZED (
        SELECT due.place
        FROM unnest(kinds, times, ids) AS lane (kind, ready_at, id)
        CROSS JOIN LATERAL (
            SELECT job.ctid AS place FROM rowlock.job_{s} AS job
            WHERE job.queue = at_queue AND job.kind = lane.kind AND job.priority = at_priority
              AND (job.ready_at, job.id) > (lane.ready_at, lane.id) AND job.ready_at <= now
              AND job.token IS NULL
            ORDER BY job.ready_at, job.id LIMIT quota
            FOR UPDATE SKIP LOCKED) AS due
        LIMIT room
    ), leased AS (
        UPDATE rowlock.job_{s} AS job
        SET token = with_token, worker = to_worker, attempt = attempt + 1, started_at = now
        WHERE ctid = ANY (ARRAY (SELECT place FROM chosen)) AND token IS NULL
        RETURNING job.*, job.ctid AS place
    ), freed AS (
        DELETE FROM rowlock.key USING leased
        WHERE leased.until_start AND leased.unique_key IS NOT NULL
          AND key.kind = leased.kind AND key.unique_key = leased.unique_key AND key.id = leased.id
    )
    SELECT {s}::smallint, leased.place, leased.ready_at, leased.id, leased.kind, leased.queue,
           leased.priority, leased.payload::text, leased.attempt, leased.max_attempts,
           leased.scheduled_at, leased.unique_key, leased.tags, leased.trace_context, leased.suspect,
           coalesce(leased.backoff, k.backoff)::text, k.timeout_ms, NULL::timestamptz
    FROM leased LEFT JOIN rowlock.kind AS k ON k.kind = leased.kind;
END $$
