-- purpose: stage jobs in the caller's transaction, all or none; answers in the order of the input
-- jobs: [{kind, payload (as text), queue, priority, scheduled_at or delay_ms, max_attempts, unique_key,
-- unique_until, tags, trace_context, backoff, declared}, ...], all but kind optional; as text, which
-- every driver can send
CREATE FUNCTION rowlock.stage(jobs text) RETURNS TABLE (id bigint, status text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    list CONSTANT json := jobs;
    segment CONSTANT integer := coalesce(pg_sequence_last_value('rowlock.ring'), 0) % 8;
    staged record;
    holder bigint;
BEGIN
    CASE segment WHEN 0 THEN staged := rowlock.stage_many_0(list);
                 WHEN 1 THEN staged := rowlock.stage_many_1(list);
                 WHEN 2 THEN staged := rowlock.stage_many_2(list);
                 ELSE staged := rowlock.stage_many_3(list); END CASE;
    IF staged.problems IS NOT NULL THEN
        RAISE EXCEPTION 'rowlock: %', staged.problems[1] USING ERRCODE = 'RL001', DETAIL = staged.problems_at[1] - 1;
    END IF;
    FOR i IN 1..coalesce(cardinality(staged.met), 0) LOOP
        SELECT k.id INTO holder FROM rowlock.key AS k
        WHERE k.kind = staged.met_kinds[i] AND k.unique_key = staged.met_keys[i];
        IF holder IS NULL THEN
            -- It was freed while we asked: the key is to be had again.
            SELECT again.id, again.status INTO holder, status
            FROM rowlock.stage(json_build_array(list -> (staged.met[i] - 1)::integer)::text) AS again;
            staged.statuses[staged.met[i]] := status;
        END IF;
        staged.ids[staged.met[i]] := holder;
    END LOOP;
    IF staged.late THEN
        PERFORM nextval('rowlock.unsorted');
    END IF;
    -- One notification wakes every worker that sleeps.
    IF 'queued' = ANY (staged.statuses) AND rowlock.must_notify() THEN
        PERFORM rowlock.notify();
    END IF;
    RETURN QUERY SELECT * FROM unnest(staged.ids, staged.statuses);
END $$
