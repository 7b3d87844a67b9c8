-- purpose: stage jobs in the caller's transaction, all or none; answers in the order of the input
-- jobs: [{kind, payload (as text), queue, priority, scheduled_at or delay_ms, max_attempts, unique_key,
-- unique_until, tags, trace_context, backoff, declared}, ...], all but kind optional; as text, which
-- every driver can send
CREATE FUNCTION rowlock.stage(jobs text) RETURNS TABLE (id bigint, status text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    list CONSTANT json := jobs;
    segment integer;
    answer record;
    holder bigint;
    rings boolean := false;
    late boolean := false;
BEGIN
    SELECT last_value % 8 INTO segment FROM rowlock.ring;
    FOR answer IN EXECUTE format('SELECT * FROM rowlock.stage_%s($1)', segment) USING list LOOP
        IF answer.problem IS NOT NULL THEN
            RAISE EXCEPTION 'rowlock: %', answer.problem USING ERRCODE = 'RL001', DETAIL = answer.n - 1;
        END IF;
        id := answer.id;
        status := answer.status;
        IF status = 'duplicate' THEN
            SELECT k.id INTO holder FROM rowlock.key AS k
            WHERE k.kind = answer.kind AND k.unique_key = answer.unique_key;
            IF holder IS NULL THEN
                -- It was freed while we asked: the key is to be had again.
                SELECT again.id, again.status INTO id, status
                FROM rowlock.stage(json_build_array(list -> (answer.n - 1)::integer)::text) AS again;
            ELSE
                id := holder;
            END IF;
        END IF;
        rings := rings OR status = 'queued';
        late := late OR answer.late;
        RETURN NEXT;
    END LOOP;
    IF late THEN
        PERFORM nextval('rowlock.unsorted');
    END IF;
    -- Whoever rings takes the sign down: one notification for all who sleep.
    IF rings AND (SELECT last_value FROM rowlock.bell) = 1 THEN
        PERFORM setval('rowlock.bell', 0);
        PERFORM pg_notify('rowlock.ready', '');
    END IF;
END $$
