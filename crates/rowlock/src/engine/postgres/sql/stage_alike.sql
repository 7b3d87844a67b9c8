-- purpose: stage jobs that are due now, have no key and differ in nothing but their payloads, in the caller's transaction
-- jobs: {kind, queue, priority, max_attempts, trace_context, declared, payload, payload, ...}, an array as text
-- Answers a number for each, as stage_call does, in the order of the input.
-- differs: as stage, for the usual case, as stage_plain
CREATE FUNCTION rowlock.stage_alike(jobs text) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    parts CONSTANT text[] := jobs;
    payloads CONSTANT text[] := parts[7:];
    now CONSTANT timestamptz := CASE WHEN pg_current_xact_id() IS NOT NULL THEN rowlock.now() END;
    attempts CONSTANT bigint := parts[4];
    its record;
    ids bigint[];
BEGIN
    its := rowlock.stage_known(parts[1], parts[2], parts[3]::bigint);
    IF its.queue IS NULL OR attempts NOT BETWEEN 1 AND 1000000
        OR parts[5] COLLATE "C" !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
        OR EXISTS (SELECT 1 FROM unnest(payloads) AS p WHERE (octet_length(p) > 256 OR strpos(p, E'\\u0000') > 0)
                   AND rowlock.stage_problem(parts[1], p, NULL, NULL, NULL, NULL, NULL, NULL, NULL) IS NOT NULL) THEN
        RETURN ARRAY (SELECT coalesce(s.id, 0) * 4 + array_position('{queued,duplicate,held,rejected}', s.status) - 1
            FROM rowlock.stage((SELECT json_agg(json_build_object(
                'kind', parts[1], 'payload', p, 'queue', parts[2], 'priority', parts[3]::bigint, 'max_attempts', attempts,
                'trace_context', parts[5], 'declared', parts[6]::json) ORDER BY n)
                FROM unnest(payloads) WITH ORDINALITY AS p (p, n))::text) AS s);
    END IF;
    CASE coalesce(pg_sequence_last_value('rowlock.ring'), 0) % 8
    WHEN 0 THEN ids := rowlock.stage_alike_0(parts[1], its.queue, its.priority, coalesce(attempts, its.max_attempts)::integer, its.until_start, parts[5], payloads, now);
    WHEN 1 THEN ids := rowlock.stage_alike_1(parts[1], its.queue, its.priority, coalesce(attempts, its.max_attempts)::integer, its.until_start, parts[5], payloads, now);
    WHEN 2 THEN ids := rowlock.stage_alike_2(parts[1], its.queue, its.priority, coalesce(attempts, its.max_attempts)::integer, its.until_start, parts[5], payloads, now);
    ELSE ids := rowlock.stage_alike_3(parts[1], its.queue, its.priority, coalesce(attempts, its.max_attempts)::integer, its.until_start, parts[5], payloads, now);
    END CASE;
    -- As in stage.
    IF rowlock.must_notify() THEN
        PERFORM rowlock.notify();
    END IF;
    RETURN ARRAY (SELECT id * 4 FROM unnest(ids) AS id);
END $$
