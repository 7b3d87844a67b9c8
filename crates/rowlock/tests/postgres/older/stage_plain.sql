-- purpose: stage one job that is due now and has no key of its own, in the caller's transaction
-- moves: stage none -> pending
-- job: {kind, payload, queue, priority, max_attempts, trace_context, declared}, an array as text
-- Answers one number, as stage_call does: it is cheaper to send, and to ask for.
-- differs: as stage, for the usual case: its kind is known, has no key and no switch, nor has its queue, and a job has
-- been in its lane before. Whatever speaks against that is left to stage. Small statements: one that joins them
-- all takes longer to start than a row to store.
CREATE FUNCTION rowlock.stage_plain(job text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    parts CONSTANT text[] := job;
    -- In this order, as in stage_many.
    xid CONSTANT xid8 := pg_current_xact_id();
    now CONSTANT timestamptz := rowlock.now();
    k record;
    its_queue text;
    its_priority smallint;
    number bigint;
BEGIN
    SELECT queue, priority, max_attempts, unique_until = 'start' AS until_start INTO k
    FROM rowlock.kind WHERE kind = parts[1] AND switch IS NULL AND key_fields = '{}';
    IF k.queue IS NOT NULL
        -- A known lane has a valid name; a payload may still break a rule.
        AND (parts[2] IS NULL OR octet_length(parts[2]) <= 256 AND strpos(parts[2], '\u0000') = 0
             OR rowlock.stage_problem(parts[1], parts[2], NULL, NULL, NULL, NULL, NULL, NULL, NULL) IS NULL)
        AND (parts[4] IS NULL OR parts[4]::bigint BETWEEN -32768 AND 32767)
        AND (parts[5] IS NULL OR parts[5]::bigint BETWEEN 1 AND 1000000) THEN
        its_queue := coalesce(parts[3], k.queue);
        its_priority := coalesce(parts[4]::smallint, k.priority);
        PERFORM 1 FROM rowlock.queue WHERE queue = its_queue AND switch IS NOT NULL;
        IF NOT FOUND THEN
            PERFORM 1 FROM rowlock.lane WHERE queue = its_queue AND kind = parts[1] AND priority = its_priority;
            IF FOUND THEN
                number := nextval('rowlock.job_id');
            END IF;
        END IF;
    END IF;
    IF number IS NULL THEN
        RETURN (SELECT coalesce(s.id, 0) * 4 + array_position('{queued,duplicate,held,rejected}', s.status) - 1
            FROM rowlock.stage(json_build_array(json_build_object(
                'kind', parts[1], 'payload', parts[2], 'queue', parts[3], 'priority', parts[4]::bigint,
                'max_attempts', parts[5]::bigint, 'trace_context', parts[6], 'declared', parts[7]::json))::text) AS s);
    END IF;
    CASE coalesce(pg_sequence_last_value('rowlock.ring'), 0) % 8
    WHEN 0 THEN
        INSERT INTO rowlock.job_0 VALUES (number, now, now, now, NULL, NULL, NULL, 0, coalesce(parts[5]::integer, k.max_attempts),
            its_priority, k.until_start, false, false, false, its_queue, parts[1], NULL, NULL, parts[6], NULL, NULL,
            coalesce(parts[2], '{}')::json);
    WHEN 1 THEN
        INSERT INTO rowlock.job_1 VALUES (number, now, now, now, NULL, NULL, NULL, 0, coalesce(parts[5]::integer, k.max_attempts),
            its_priority, k.until_start, false, false, false, its_queue, parts[1], NULL, NULL, parts[6], NULL, NULL,
            coalesce(parts[2], '{}')::json);
    WHEN 2 THEN
        INSERT INTO rowlock.job_2 VALUES (number, now, now, now, NULL, NULL, NULL, 0, coalesce(parts[5]::integer, k.max_attempts),
            its_priority, k.until_start, false, false, false, its_queue, parts[1], NULL, NULL, parts[6], NULL, NULL,
            coalesce(parts[2], '{}')::json);
    ELSE
        INSERT INTO rowlock.job_3 VALUES (number, now, now, now, NULL, NULL, NULL, 0, coalesce(parts[5]::integer, k.max_attempts),
            its_priority, k.until_start, false, false, false, its_queue, parts[1], NULL, NULL, parts[6], NULL, NULL,
            coalesce(parts[2], '{}')::json);
    END CASE;
    -- As in stage.
    IF pg_sequence_last_value('rowlock.bell') = 1 THEN
        PERFORM setval('rowlock.bell', 0);
        PERFORM pg_notify('rowlock.ready', '');
    END IF;
    RETURN number * 4;
END $$
