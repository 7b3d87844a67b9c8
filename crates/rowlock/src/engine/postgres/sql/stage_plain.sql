-- purpose: stage one job that is due now and has no key of its own, in the caller's transaction
-- moves: stage none -> pending
-- Answers one number, as stage_call does: it is cheaper to send, and to ask for.
-- differs: as stage, for the usual case: its kind is known, has no key and no switch, nor has its queue, and its lane is
-- known; of a plain kind one look says all that. Whatever speaks against it is left to stage. Every expression is
-- prepared anew in each transaction and every statement started, so there are few of both.
CREATE FUNCTION rowlock.stage_plain(
    of_kind text, payload text, in_queue text, in_priority bigint, attempts bigint, trace text, declared text)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    -- The transaction's number comes first, as in stage_many.
    now CONSTANT timestamptz := CASE WHEN pg_current_xact_id() IS NOT NULL THEN rowlock.now() END;
    its record;
    answer bigint;
BEGIN
    SELECT queue, priority, max_attempts, unique_until = 'start' AS until_start INTO its
    FROM rowlock.kind WHERE kind = of_kind AND plain;
    IF in_queue <> its.queue OR in_priority <> its.priority OR its.queue IS NULL THEN
        its := rowlock.stage_known(of_kind, in_queue, in_priority);
    END IF;
    -- A known lane has a valid name; a payload may still break a rule.
    IF its.queue IS NULL OR attempts NOT BETWEEN 1 AND 1000000
        OR trace COLLATE "C" !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
        OR (octet_length(payload) > 256 OR strpos(payload, E'\\u0000') > 0)
           AND rowlock.stage_problem(of_kind, payload, NULL, NULL, NULL, NULL, NULL, NULL, NULL) IS NOT NULL THEN
        RETURN (SELECT coalesce(s.id, 0) * 4 + array_position('{queued,duplicate,held,rejected}', s.status) - 1
            FROM rowlock.stage(json_build_array(json_build_object(
                'kind', of_kind, 'payload', payload, 'queue', in_queue, 'priority', in_priority, 'max_attempts', attempts,
                'trace_context', trace, 'declared', declared::json))::text) AS s);
    END IF;
    CASE coalesce(pg_sequence_last_value('rowlock.ring'), 0) % 8
    WHEN 0 THEN
        INSERT INTO rowlock.job_0 VALUES (nextval('rowlock.job_id'), now, now, now, NULL, NULL, NULL, 0,
            coalesce(attempts, its.max_attempts), its.priority, its.until_start, false, false, false,
            its.queue, of_kind, NULL, NULL, trace, NULL, NULL, coalesce(payload, '{}')::json)
        RETURNING id * 4 INTO answer;
    WHEN 1 THEN
        INSERT INTO rowlock.job_1 VALUES (nextval('rowlock.job_id'), now, now, now, NULL, NULL, NULL, 0,
            coalesce(attempts, its.max_attempts), its.priority, its.until_start, false, false, false,
            its.queue, of_kind, NULL, NULL, trace, NULL, NULL, coalesce(payload, '{}')::json)
        RETURNING id * 4 INTO answer;
    WHEN 2 THEN
        INSERT INTO rowlock.job_2 VALUES (nextval('rowlock.job_id'), now, now, now, NULL, NULL, NULL, 0,
            coalesce(attempts, its.max_attempts), its.priority, its.until_start, false, false, false,
            its.queue, of_kind, NULL, NULL, trace, NULL, NULL, coalesce(payload, '{}')::json)
        RETURNING id * 4 INTO answer;
    ELSE
        INSERT INTO rowlock.job_3 VALUES (nextval('rowlock.job_id'), now, now, now, NULL, NULL, NULL, 0,
            coalesce(attempts, its.max_attempts), its.priority, its.until_start, false, false, false,
            its.queue, of_kind, NULL, NULL, trace, NULL, NULL, coalesce(payload, '{}')::json)
        RETURNING id * 4 INTO answer;
    END CASE;
    -- As in stage.
    IF rowlock.must_notify() THEN
        PERFORM rowlock.notify();
    END IF;
    RETURN answer;
END $$
