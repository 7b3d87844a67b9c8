-- purpose: turn the ring: go on to an empty segment when the current one is full, and empty those behind
-- differs: only Postgres has a ring
-- seen: who held locks on a segment at the last look. Whoever still does would make us wait, and
-- everybody behind us: such a segment is left for the next time.
CREATE FUNCTION rowlock.rotate(segment_bytes bigint, seen text[])
RETURNS TABLE (segment integer, bytes bigint, did text, holders text[]) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '50ms' AS $$
#variable_conflict use_column
DECLARE
    now CONSTANT timestamptz := rowlock.now();
    pointer bigint;
    current integer;
    tried boolean := false;
    empty integer;
BEGIN
    IF NOT rowlock.try_lock('rowlock.job', 'SHARE UPDATE EXCLUSIVE') THEN
        RETURN;
    END IF;
    pointer := (SELECT last_value FROM rowlock.ring);
    current := pointer % 8;
    -- An older snapshot than the lock would not see what the last writers left in the segment.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'rowlock.rotate needs READ COMMITTED';
    END IF;
    IF pg_relation_size(format('rowlock.job_%s', current)::regclass) > segment_bytes THEN
        SELECT s INTO empty FROM (SELECT (current + n) % 4 AS s FROM generate_series(1, 3) AS n) AS others
        WHERE pg_relation_size(format('rowlock.job_%s', s)::regclass) = 0 LIMIT 1;
        IF empty IS NOT NULL THEN
            PERFORM setval('rowlock.ring', (pointer / 8 + 1) * 8 + empty);
            current := empty;
        END IF;
    END IF;
    FOR each IN 0..3 LOOP
        segment := each;
        bytes := pg_relation_size(format('rowlock.job_%s', segment)::regclass);
        holders := '{}';
        IF segment = current THEN
            did := 'current';
        ELSIF bytes = 0 THEN
            did := 'empty';
        ELSE
            holders := ARRAY (SELECT DISTINCT l.virtualtransaction || ' ' || l.pid FROM pg_locks AS l
                WHERE l.relation = format('rowlock.job_%s', segment)::regclass AND l.database =
                    (SELECT oid FROM pg_database WHERE datname = current_database())
                  AND l.granted AND l.pid <> pg_backend_pid());
            -- One at a time: nobody waits for one lock because we wait for another.
            did := CASE WHEN holders && seen THEN 'blocked' WHEN tried THEN 'later'
                        ELSE rowlock.retire(segment, current, now) END;
            tried := tried OR did IN ('retired', 'busy', 'moved');
        END IF;
        RETURN NEXT;
    END LOOP;
END $$
