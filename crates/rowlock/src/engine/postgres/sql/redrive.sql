-- purpose: ended jobs get all their attempts again, keeping their ids and their errors
-- moves: redrive completed -> pending
-- moves: redrive failed -> pending
-- moves: redrive cancelled -> pending
CREATE FUNCTION rowlock.redrive(ids bigint[]) RETURNS TABLE (answer text, state text, holder bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    job_id bigint;
    ended record;
BEGIN
    FOREACH job_id IN ARRAY ids LOOP
        answer := NULL;
        holder := NULL;
        SELECT * INTO ended FROM rowlock.history WHERE id = job_id FOR UPDATE;
        IF NOT FOUND THEN
            state := rowlock.state_of(job_id);
            RETURN NEXT;
            CONTINUE;
        END IF;
        state := ended.state;
        IF ended.unique_key IS NOT NULL THEN
            INSERT INTO rowlock.key (kind, unique_key, id) VALUES (ended.kind, ended.unique_key, job_id)
            ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                SELECT k.id INTO holder FROM rowlock.key AS k
                WHERE k.kind = ended.kind AND k.unique_key = ended.unique_key;
                RETURN NEXT;
                CONTINUE;
            END IF;
        END IF;
        PERFORM rowlock.forget(job_id);
        -- Who wants it again lifts what was called off.
        DELETE FROM rowlock.pair_key AS k USING rowlock.pair AS p
        WHERE p.kind = ended.kind AND k.pair = p.name AND k.key = ended.unique_key AND k.reason = 'cancelled';
        EXECUTE format('INSERT INTO rowlock.job_%s SELECT ($1).*', (SELECT last_value % 8 FROM rowlock.ring))
        USING ROW(ended.id, now, now, ended.created_at, NULL, NULL, NULL, 0, ended.max_attempts,
            ended.priority, ended.until_start, false, false, false, ended.queue, ended.kind, ended.unique_key,
            ended.tags, ended.trace_context, ended.backoff, ended.errors, ended.payload)::rowlock.job;
        PERFORM rowlock.arrived(ARRAY[ROW(ended.queue, ended.kind, ended.priority)::rowlock.lane], now, now);
        answer := 'redriven';
        RETURN NEXT;
    END LOOP;
END $$
