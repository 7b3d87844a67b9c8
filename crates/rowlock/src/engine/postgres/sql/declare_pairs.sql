-- purpose: write pairs with their posts, those that are there already only with change; how they were before
-- pairs: [{name, kind, declared, hold_back_ms, shards, query, key}, ...]
CREATE FUNCTION rowlock.declare_pairs(pairs text, change boolean) RETURNS TABLE (name text, before text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
    new record;
    old json;
BEGIN
    FOR new IN
        SELECT w.* FROM json_to_recordset(pairs::json) AS w (
            name text, kind text, declared json, hold_back_ms bigint, shards integer)
        ORDER BY w.name COLLATE "C"
    LOOP
        -- Whoever writes the kind waits until the pair is there, and then leaves alone what it relies on.
        PERFORM 1 FROM rowlock.kind AS k WHERE k.kind = new.kind FOR SHARE;
        INSERT INTO rowlock.pair (name, kind, declared, hold_back_ms, declared_at)
        VALUES (new.name, new.kind, new.declared, new.hold_back_ms, rowlock.now())
        ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            old := NULL;
        ELSE
            SELECT p.declared INTO old FROM rowlock.pair AS p WHERE p.name = new.name FOR UPDATE;
        END IF;
        name := new.name;
        before := old::text;
        RETURN NEXT;
        CONTINUE WHEN old IS NOT NULL AND (NOT change OR old::jsonb = new.declared::jsonb);
        IF old IS NOT NULL THEN
            UPDATE rowlock.pair AS p SET kind = new.kind, declared = new.declared, hold_back_ms = new.hold_back_ms
            WHERE p.name = new.name;
        END IF;
        DELETE FROM rowlock.post AS p WHERE p.duty = 'pair' AND p.name = new.name AND p.shard >= new.shards;
        INSERT INTO rowlock.post (duty, name, shard)
        SELECT 'pair', new.name, s FROM generate_series(0, new.shards - 1) AS s
        ON CONFLICT DO NOTHING;
        -- It is due at once. Another query begins anew; so do other shards, each with rows that were another's.
        UPDATE rowlock.post AS p SET due_at = NULL, cursor = CASE
            WHEN ARRAY[old ->> 'query', old ->> 'key', old ->> 'shards'] IS NOT DISTINCT FROM
                 ARRAY[new.declared ->> 'query', new.declared ->> 'key', new.declared ->> 'shards']
            THEN p.cursor END
        WHERE p.duty = 'pair' AND p.name = new.name AND (p.due_at IS NOT NULL OR p.cursor IS NOT NULL);
    END LOOP;
END $$
