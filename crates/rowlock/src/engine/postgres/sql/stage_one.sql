-- purpose: stage one job that is due now and has no key of its own, in the caller's transaction
-- job: {kind, payload, queue, priority, max_attempts, trace_context, declared}, an array as text
-- differs: as stage, for the usual case: a plan of ten steps takes longer to start than one row to store
CREATE FUNCTION rowlock.stage_one(job text, OUT id bigint, OUT status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts CONSTANT text[] := job;
    problem text;
BEGIN
    -- A known lane has a valid name; a payload may still break a rule.
    IF octet_length(parts[2]) > 256 OR strpos(parts[2], '\u0000') > 0
        OR parts[4]::bigint NOT BETWEEN -32768 AND 32767 OR parts[5]::bigint NOT BETWEEN 1 AND 1000000 THEN
        problem := rowlock.stage_problem(parts[1], parts[2], NULL, parts[4]::bigint, NULL, parts[5]::bigint, NULL, NULL, NULL);
    END IF;
    IF problem IS NULL THEN
        CASE coalesce(pg_sequence_last_value('rowlock.ring'), 0) % 8
            WHEN 0 THEN id := rowlock.stage_plain_0(parts);
            WHEN 1 THEN id := rowlock.stage_plain_1(parts);
            WHEN 2 THEN id := rowlock.stage_plain_2(parts);
            ELSE id := rowlock.stage_plain_3(parts);
        END CASE;
    END IF;
    IF id IS NULL THEN
        SELECT staged.id, staged.status INTO id, status
        FROM rowlock.stage(json_build_array(json_build_object(
            'kind', parts[1], 'payload', parts[2], 'queue', parts[3], 'priority', parts[4]::bigint,
            'max_attempts', parts[5]::bigint, 'trace_context', parts[6], 'declared', parts[7]::json))::text) AS staged;
        RETURN;
    END IF;
    status := 'queued';
    -- As in stage.
    IF pg_sequence_last_value('rowlock.bell') = 1 THEN
        PERFORM setval('rowlock.bell', 0);
        PERFORM pg_notify('rowlock.ready', '');
    END IF;
END $$
