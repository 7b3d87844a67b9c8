-- purpose: write kinds as declared, all or none, those that are there already only with change; how they were before
-- kinds: [{kind, queue, ...}, ...]; their switches and routes stay as they are. A pair relies on its kind's key: the
-- row is locked before the pairs are looked at, and declaring a pair locks it too.
CREATE FUNCTION rowlock.write_kinds(kinds text, change boolean) RETURNS TABLE (
    kind text, queue text, priority smallint, max_attempts integer, backoff text, timeout_ms bigint, key_fields text[],
    unique_until text, keep_completed_ms bigint, keep_failed_ms bigint, keep_cancelled_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    new record;
    old rowlock.kind;
    relies text;
BEGIN
    FOR new IN
        SELECT w.* FROM json_to_recordset(kinds::json) AS w (
            kind text, queue text, priority smallint, max_attempts integer, backoff json, timeout_ms bigint,
            key_fields text[], unique_until text, keep_completed_ms bigint, keep_failed_ms bigint,
            keep_cancelled_ms bigint)
        ORDER BY w.kind COLLATE "C"
    LOOP
        INSERT INTO rowlock.kind
            (kind, queue, priority, max_attempts, backoff, timeout_ms, key_fields, unique_until,
             keep_completed_ms, keep_failed_ms, keep_cancelled_ms)
        VALUES (new.kind, new.queue, new.priority, new.max_attempts, new.backoff, new.timeout_ms, new.key_fields,
                new.unique_until, new.keep_completed_ms, new.keep_failed_ms, new.keep_cancelled_ms)
        ON CONFLICT (kind) DO NOTHING;
        CONTINUE WHEN FOUND;
        SELECT k.* INTO old FROM rowlock.kind AS k WHERE k.kind = new.kind FOR UPDATE;
        RETURN QUERY SELECT old.kind, old.queue, old.priority, old.max_attempts, old.backoff::text, old.timeout_ms,
            old.key_fields, old.unique_until, old.keep_completed_ms, old.keep_failed_ms, old.keep_cancelled_ms;
        CONTINUE WHEN NOT change;
        SELECT p.name INTO relies FROM rowlock.pair AS p
        WHERE p.kind = new.kind
          AND (ARRAY (SELECT json_array_elements_text(p.declared -> 'key')) <> new.key_fields
               OR new.unique_until <> 'finished')
          AND (old.key_fields <> new.key_fields OR old.unique_until <> new.unique_until)
        ORDER BY p.name LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'rowlock: pair % relies on the key of kind % as it is', relies, new.kind
                USING ERRCODE = 'RL001';
        END IF;
        UPDATE rowlock.kind AS k SET
            queue = new.queue, priority = new.priority, max_attempts = new.max_attempts, backoff = new.backoff,
            timeout_ms = new.timeout_ms, key_fields = new.key_fields, unique_until = new.unique_until,
            keep_completed_ms = new.keep_completed_ms, keep_failed_ms = new.keep_failed_ms,
            keep_cancelled_ms = new.keep_cancelled_ms
        WHERE k.kind = new.kind;
    END LOOP;
END $$
