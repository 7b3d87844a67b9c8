-- purpose: lease the suspects that are most wanted, and tell when the next one is due
-- moves: claim pending -> processing
-- differs: suspects are set aside, so that no other claim walks past them
-- of_kinds: with a route and none named, every kind
CREATE FUNCTION rowlock.claim_suspect(
    to_worker bigint, with_token bigint, of_kinds text[], of_queues text[],
    of_route text DEFAULT 'direct', most integer DEFAULT 1)
RETURNS SETOF rowlock.claimed LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    every_kind CONSTANT boolean := of_kinds = '{}' AND of_route <> 'direct';
BEGIN
    IF NOT EXISTS (SELECT 1 FROM rowlock.worker AS w WHERE w.number = to_worker) THEN
        RAISE EXCEPTION 'the worker was given up' USING ERRCODE = 'RL002';
    END IF;
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT a.id FROM rowlock.aside AS a
        LEFT JOIN rowlock.kind AS k ON k.kind = a.kind
        LEFT JOIN rowlock.queue AS q ON q.queue = a.queue
        WHERE a.suspect AND a.token IS NULL AND a.ready_at <= now
          AND (a.kind = ANY (of_kinds) OR every_kind) AND (of_queues = '{}' OR a.queue = ANY (of_queues))
          AND coalesce(nullif(k.route, 'direct'), q.route, 'direct') = of_route
          AND NOT rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause')
          AND NOT rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause')
        ORDER BY a.priority DESC, a.ready_at, a.id LIMIT most
        FOR UPDATE OF a SKIP LOCKED
    ), leased AS (
        UPDATE rowlock.aside AS job
        SET token = with_token, worker = to_worker, attempt = attempt + 1, started_at = now
        WHERE job.id = ANY (ARRAY (SELECT wanted.id FROM wanted)) AND job.token IS NULL
        RETURNING job.*
    ), freed AS (
        -- Not by a join: where statistics were made while no key was held, it would walk past every dead one.
        DELETE FROM rowlock.key WHERE key.id = ANY (ARRAY (
            SELECT leased.id FROM leased WHERE leased.until_start AND leased.unique_key IS NOT NULL))
    )
    SELECT NULL::smallint, NULL::tid, leased.ready_at, leased.id, leased.kind, leased.queue, leased.priority,
           leased.payload::text, leased.attempt, leased.max_attempts, leased.scheduled_at, leased.unique_key,
           leased.tags, leased.trace_context, true, coalesce(leased.backoff, k.backoff)::text, k.timeout_ms,
           leased.created_at
    FROM leased LEFT JOIN rowlock.kind AS k ON k.kind = leased.kind;
    IF FOUND AND NOT rowlock.worker_lives(to_worker) THEN
        RAISE EXCEPTION 'the worker was given up' USING ERRCODE = 'RL002';
    END IF;
    RETURN QUERY SELECT NULL::smallint, NULL::tid,
        (SELECT min(a.ready_at) FROM rowlock.aside AS a
         LEFT JOIN rowlock.kind AS k ON k.kind = a.kind
         LEFT JOIN rowlock.queue AS q ON q.queue = a.queue
         WHERE a.suspect AND a.token IS NULL AND a.ready_at > now
           AND (a.kind = ANY (of_kinds) OR every_kind) AND (of_queues = '{}' OR a.queue = ANY (of_queues))
           AND coalesce(nullif(k.route, 'direct'), q.route, 'direct') = of_route
           AND NOT rowlock.is_on(k.switch, k.switch_until, now, 'hold', 'pause')
           AND NOT rowlock.is_on(q.switch, q.switch_until, now, 'hold', 'pause')),
        NULL::bigint, NULL, NULL, NULL::smallint,
        coalesce((SELECT s.id FROM rowlock.store AS s WHERE s.one), rowlock.store_id())::text, NULL::integer, NULL::integer, now, NULL,
        NULL::text[], NULL, NULL::boolean, NULL, NULL::bigint, NULL::timestamptz;
END $$
